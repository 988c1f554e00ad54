"""Models of LLaVA's kind: what is supported, and that every language model in one is served."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from picture_files import decoded, encoded, stripes
from transformers import (
    AutoConfig,
    CLIPVisionConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    SiglipVisionConfig,
)

from neodim_sampling.prompt_items import ImageItem
from neodim_sampling.text.tiles import Area
from workers.contract.settings import Settings
from workers.engine.families import FAMILIES
from workers.engine.model_path import open_model
from workers.engine.pictures import PlacedPicture, insets_of
from workers.engine.text_model import Run
from workers.models.llava import CAN_BE_TIED, read_eyesight, take_apart
from workers.models.loader import LoadedModel, load_model
from workers.models.unusable import ModelUnusable
from workers.models.visible_square import normalised, visible_square

pytestmark = pytest.mark.model

TINY = Path(__file__).parents[2] / "data" / "tiny"
TOWERS = {"clip": CLIPVisionConfig, "siglip": SiglipVisionConfig}
PER_SIDE, TILE, PICTURE_TOKEN = 3, 4, 40
SQUARE = ImageItem(picture=stripes())


def load(directory: str | Path) -> LoadedModel:
    return load_model(Settings(model=str(directory), precision="float32"))


def changed_model(source: Path, target: Path, **changes: Any) -> Path:
    """A copy of a model with other values in its files, by their names."""
    shutil.copytree(source, target)
    for name, values in changes.items():
        path = target / f"{name}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    return target


def llava(family: str, tower: str = "clip", *, is_tied: bool = False, **options: Any) -> Any:
    """A random model around a language model of a family."""
    torch.manual_seed(3)
    vision = TOWERS[tower](
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        image_size=PER_SIDE * TILE,
        patch_size=TILE,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=AutoConfig.from_pretrained(TINY / family, tie_word_embeddings=is_tied),
        image_token_index=PICTURE_TOKEN,
        initializer_range=0.2,
        **options,
    )
    return LlavaForConditionalGeneration(config).eval()


@torch.inference_mode()
def assert_reads_as_the_whole_model(whole: Any, vision_model: Path, n_tokens: int) -> None:
    """The language part with the eye's rows gives the scores of the model that they come from."""
    eyesight = read_eyesight(str(vision_model), whole.config, {})
    pixels = torch.from_numpy(normalised(visible_square(SQUARE, eyesight).pixels, eyesight))
    ids = [5, 6, 7, *[PICTURE_TOKEN] * n_tokens, 8, 9]
    expected = whole(input_ids=torch.tensor([ids]), pixel_values=pixels[None]).logits[0]
    language, eye = take_apart(whole, eyesight)
    picture = eye.see(SQUARE)

    model = open_model(language, 2, 40)
    insets = insets_of([PlacedPicture(3, 3 + n_tokens, picture)], 0, len(ids))
    outcome = model.read([Run(1, 0, ids, insets=insets)])

    assert picture.tiles.token == PICTURE_TOKEN
    assert len(picture.tiles.areas) == len(picture.rows) == n_tokens
    found = model.score(outcome.hidden[0])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_language_model_of_any_family_reads_as_in_the_whole_model(
    family: str, tiny_vision_model: Path
) -> None:
    assert_reads_as_the_whole_model(llava(family), tiny_vision_model, PER_SIDE**2)


@pytest.mark.parametrize("family", CAN_BE_TIED)
def test_output_may_be_tied_to_the_embeddings(family: str, tiny_vision_model: Path) -> None:
    whole = llava(family, is_tied=True)

    assert_reads_as_the_whole_model(whole, tiny_vision_model, PER_SIDE**2)


def test_siglip_tower_gives_a_token_for_each_tile(tiny_vision_model: Path) -> None:
    whole = llava("llama", "siglip", vision_feature_select_strategy="full")

    assert_reads_as_the_whole_model(whole, tiny_vision_model, PER_SIDE**2)


def test_full_strategy_of_clip_has_a_token_more_for_the_whole_square(
    tiny_vision_model: Path,
) -> None:
    whole = llava("llama", vision_feature_select_strategy="full")
    eyesight = read_eyesight(str(tiny_vision_model), whole.config, {})
    _, eye = take_apart(llava("llama", vision_feature_select_strategy="full"), eyesight)

    first, second, *_ = eye.see(SQUARE).tiles.areas

    assert first == Area(0.0, 0.0, 1.0, 1.0)
    assert second == Area(0.0, 0.0, 1 / PER_SIDE, 1 / PER_SIDE)
    assert_reads_as_the_whole_model(whole, tiny_vision_model, PER_SIDE**2 + 1)


def test_several_layers_of_the_tower_may_be_seen(tiny_vision_model: Path) -> None:
    whole = llava("llama", vision_feature_layer=[-1, -2])

    assert_reads_as_the_whole_model(whole, tiny_vision_model, PER_SIDE**2)


def test_pictures_that_look_alike_have_one_key_and_others_another(
    tiny_vision_model: Path,
) -> None:
    eye = load(tiny_vision_model).eye
    assert eye is not None

    one = eye.see(ImageItem(picture=stripes((48, 48))))
    alike = eye.see(ImageItem(picture=encoded(decoded(stripes((48, 48))), "WEBP", lossless=True)))
    other = eye.see(ImageItem(picture=stripes((48, 32))))

    assert alike.key == one.key
    assert other.key != one.key
    assert max(one.key, other.key) < 0


def test_model_with_vision_is_loaded_with_an_eye(tiny_vision_model: Path) -> None:
    loaded = load(tiny_vision_model)

    assert loaded.model.config.model_type == "llama"
    assert loaded.max_length == 1024
    assert loaded.eos_ids == {loaded.tokenizer.eos_token_id}
    assert loaded.n_vocab == len(loaded.tokenizer)
    assert loaded.eye is not None


def test_model_of_text_alone_has_no_eye() -> None:
    assert load(TINY / "gpt2").eye is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"vision_config": {"model_type": "pixtral"}}, "vision towers of type pixtral are not"),
        ({"image_token_index": 999}, "image_token_index: 999 is no token of the language model"),
        (
            {"vision_config": {"model_type": "siglip_vision_model"}},
            "vision_feature_select_strategy: default would leave out",
        ),
        ({"text_config": {"model_type": "mamba"}}, "models of type mamba are not supported"),
        (
            {"text_config": {"model_type": "gpt2", "tie_word_embeddings": True}},
            "a gpt2 as the language model of llava cannot share its embeddings with its output",
        ),
    ],
)
def test_model_with_another_kind_of_vision_is_refused(
    change: dict[str, Any], reason: str, tiny_vision_model: Path, tmp_path: Path
) -> None:
    source = changed_model(tiny_vision_model, tmp_path / "model", config=change)

    with pytest.raises(ModelUnusable, match=f"^--model: {reason}"):
        load(source)


def test_model_whose_way_of_seeing_is_not_known_is_refused(
    tiny_vision_model: Path, tmp_path: Path
) -> None:
    source = changed_model(tiny_vision_model, tmp_path / "model")
    (source / "preprocessor_config.json").unlink()

    with pytest.raises(ModelUnusable, match="cannot be loaded"):
        load(source)


@pytest.mark.parametrize("change", [{"image_mean": None}, {"image_std": [1, 2]}, {"resample": 99}])
def test_preprocessing_that_cannot_be_used_is_refused(
    change: dict[str, Any], tiny_vision_model: Path, tmp_path: Path
) -> None:
    source = changed_model(tiny_vision_model, tmp_path / "model", preprocessor_config=change)

    with pytest.raises(ModelUnusable, match=r"^--model: preprocessor_config\.json"):
        load(source)
