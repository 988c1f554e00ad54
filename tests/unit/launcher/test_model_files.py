from __future__ import annotations

import json
from pathlib import Path

import pytest
from gguf import GGUFWriter

from workers.launcher.errors import BadFlag
from workers.launcher.model_files import (
    ServedModel,
    count_layers,
    count_positions,
    find_image_model,
    find_model,
    is_gptq,
)


def model_directory(path: Path, **config: object) -> Path:
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    return path


def test_a_model_on_the_hub_is_called_by_the_last_part_of_its_name() -> None:
    model = find_model("EleutherAI/gpt-neo-125M")

    assert model == ServedModel("EleutherAI/gpt-neo-125M", "gpt-neo-125M")
    assert not model.is_local
    assert count_layers(model) is None
    assert not is_gptq(model)


def test_a_directory_is_called_by_its_own_name(tmp_path: Path) -> None:
    model = find_model(f"{model_directory(tmp_path / 'my-model')}/")

    assert model == ServedModel(str(tmp_path / "my-model"), "my-model")
    assert model.is_local


def test_a_gguf_file_is_called_by_its_name_without_extension(tmp_path: Path) -> None:
    file = tmp_path / "Some.Q4_1.gguf"
    file.touch()

    model = find_model(str(file))

    assert model == ServedModel(str(file), "Some.Q4_1")


def test_without_a_name_the_bundled_file_is_found() -> None:
    model = find_model(None)

    assert model.name == "SmolLM2-135M-Instruct"
    assert model.source.endswith(".gguf")
    assert Path(model.source).is_file()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "has no config.json"),
        (lambda path: path.write_text("x"), "is no model"),
    ],
)
def test_a_path_without_a_model_is_refused(tmp_path: Path, make: object, expected: str) -> None:
    path = tmp_path / "it"
    make(path)

    with pytest.raises(BadFlag) as refusal:
        find_model(str(path))

    assert str(refusal.value).startswith(f'--model: "{path}" {expected}')


@pytest.mark.parametrize("key", ["max_position_embeddings", "n_positions", "seq_length"])
def test_positions_are_counted_by_each_of_their_names(tmp_path: Path, key: str) -> None:
    model = find_model(str(model_directory(tmp_path / "m", **{key: 7})))

    n_positions = count_positions(model)

    assert n_positions == 7


@pytest.mark.parametrize("key", ["num_layers", "n_layer", "num_hidden_layers"])
def test_layers_are_counted_by_each_of_their_names(tmp_path: Path, key: str) -> None:
    model = find_model(str(model_directory(tmp_path / "m", **{key: 7})))

    n_layers = count_layers(model)

    assert n_layers == 7


def test_layers_and_positions_are_the_language_models_where_a_model_has_eyes(
    tmp_path: Path,
) -> None:
    language = {"num_hidden_layers": 7, "max_position_embeddings": 64}
    model = find_model(str(model_directory(tmp_path / "m", n_layer=3, text_config=language)))

    assert (count_layers(model), count_positions(model)) == (7, 64)


def test_layers_are_unknown_when_the_configuration_does_not_say(tmp_path: Path) -> None:
    model = find_model(str(model_directory(tmp_path / "m", n_layer="many")))

    n_layers = count_layers(model)

    assert n_layers is None


def test_layers_and_positions_of_a_gguf_file_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(5)
    writer.add_context_length(64)
    writer.add_rope_scaling_orig_ctx_len(32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    model = find_model(str(path))

    assert (count_layers(model), count_positions(model)) == (5, 64)


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"not a model at all, whatever its name says")

    with pytest.raises(BadFlag, match="cannot be read as GGUF"):
        count_layers(find_model(str(path)))


def test_a_broken_configuration_is_refused(tmp_path: Path) -> None:
    directory = model_directory(tmp_path / "m")
    (directory / "config.json").write_text("{")

    with pytest.raises(BadFlag, match=r"config\.json.* cannot be read"):
        is_gptq(find_model(str(directory)))


def test_a_gptq_checkpoint_is_known_by_either_of_its_marks(tmp_path: Path) -> None:
    by_file = model_directory(tmp_path / "by-file")
    (by_file / "quantize_config.json").write_text("{}")
    by_config = model_directory(tmp_path / "b", quantization_config={"quant_method": "gptq"})
    plain = model_directory(tmp_path / "plain")

    found = [is_gptq(find_model(str(path))) for path in (by_file, by_config, plain)]

    assert found == [True, True, False]


TEXT_MODEL = ServedModel("/models/text", "text")


def test_an_image_model_is_called_as_a_text_model_would_be(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").touch()

    on_hub = find_image_model("someone/pictures", TEXT_MODEL)
    local = find_image_model(f"{tmp_path}/", TEXT_MODEL)

    assert on_hub == ServedModel("someone/pictures", "pictures")
    assert local == ServedModel(str(tmp_path), tmp_path.name)


def test_a_directory_without_an_image_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFlag, match=r"^--image-model: .* has no model_index.json; allowed: "):
        find_image_model(str(tmp_path), TEXT_MODEL)


@pytest.mark.parametrize("name", ["my model", "my_model"])
def test_an_image_model_whose_queue_would_be_the_text_models_is_refused(name: str) -> None:
    with pytest.raises(BadFlag, match="would be called my_model"):
        find_image_model("someone/my_model", ServedModel("/models/x", name))
