"""Loading models: precision, limits, and what is refused by name."""

from __future__ import annotations

import dataclasses
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from workers.contract.settings import Settings
from workers.models import gguf_import, loader
from workers.models.loader import load_model
from workers.models.unusable import ModelUnusable

pytestmark = pytest.mark.model

TINY = Path(__file__).parents[2] / "data" / "tiny"


def settings(family: str = "gpt2", **options: Any) -> Settings:
    return dataclasses.replace(Settings(model=str(TINY / family)), **options)


def changed_model(directory: Path, **config: Any) -> str:
    """A copy of a tiny model with another configuration."""
    target = directory / "model"
    shutil.copytree(TINY / "gpt2", target)
    path = target / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return str(target)


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [
        ("original", torch.float32),
        ("float32", torch.float32),
        ("float16", torch.float16),
        ("bfloat16", torch.bfloat16),
    ],
)
def test_model_is_loaded_in_the_precision_asked_for(precision: str, dtype: torch.dtype) -> None:
    loaded = load_model(settings(precision=precision))

    assert loaded.model.dtype is dtype
    assert not loaded.model.training


@pytest.mark.parametrize("can_compute", [True, False])
def test_numbers_that_the_processor_does_not_compute_in_are_told_of(
    can_compute: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loader, "has_arithmetic", lambda dtype: can_compute)

    with caplog.at_level(logging.WARNING, logger=loader.__name__):
        load_model(settings(precision="bfloat16"))

    assert ("does not compute in bfloat16" in caplog.text) is not can_compute


@pytest.mark.parametrize("family", ["bloom", "gpt2", "llama", "opt", "xglm"])
def test_vocabulary_has_no_token_without_a_text(family: str) -> None:
    loaded = load_model(settings(family))

    assert loaded.n_vocab == min(len(loaded.tokenizer), loaded.model.config.vocab_size)
    assert loaded.eos_ids == {loaded.model.config.eos_token_id}


def test_length_is_the_models_context_unless_another_is_asked_for() -> None:
    assert load_model(settings()).max_length == 256
    assert load_model(settings(max_length=100)).max_length == 100


def test_more_than_the_models_context_is_refused() -> None:
    with pytest.raises(ModelUnusable, match=r"--max-length: 257 is more than .* 256"):
        load_model(settings(max_length=257))


def test_model_without_an_end_token_is_served(tmp_path: Path) -> None:
    source = changed_model(tmp_path, eos_token_id=None)
    (Path(source) / "generation_config.json").unlink()

    assert load_model(settings(model=source)).eos_ids == frozenset()


def test_every_end_token_of_a_list_counts(tmp_path: Path) -> None:
    source = changed_model(tmp_path, eos_token_id=[0, 7])
    (Path(source) / "generation_config.json").unlink()

    assert load_model(settings(model=source)).eos_ids == {0, 7}


def test_unsupported_family_is_refused_by_name(tmp_path: Path) -> None:
    source = changed_model(tmp_path, model_type="t5")

    with pytest.raises(ModelUnusable, match=r"type t5 are not supported; .* bloom, .*xglm"):
        load_model(settings(model=source))


def test_broken_gguf_file_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + bytes(100))

    with pytest.raises(ModelUnusable, match=r"broken\.gguf cannot be loaded"):
        load_model(settings(model=str(file), data_dir=str(tmp_path / "data")))

    assert list((tmp_path / "data" / "models").iterdir()) == []


def test_gguf_file_is_imported_once_for_each_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[bytes] = []
    monkeypatch.setattr(
        gguf_import, "_convert", lambda file, directory: converted.append(file.read_bytes())
    )
    file = tmp_path / "some.gguf"
    models = tmp_path / "models"

    file.write_bytes(b"first")
    first = gguf_import.import_gguf(file, models)
    again = gguf_import.import_gguf(file, models)
    file.write_bytes(b"second")
    second = gguf_import.import_gguf(file, models)

    assert converted == [b"first", b"second"]
    assert first == again != second
    assert sorted(models.iterdir()) == sorted([first, second])
