"""Loading image models: what is refused, and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from workers.contract.settings import Settings
from workers.images.loader import load_pipelines
from workers.models.unusable import ModelUnusable

pytestmark = pytest.mark.model


def refusal_of(model: Path) -> str:
    with pytest.raises(ModelUnusable) as caught:
        load_pipelines(Settings(image_model=str(model), image_model_name="m"))
    return str(caught.value)


@pytest.fixture
def copy(tiny_image_model: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model, to be broken."""
    return Path(shutil.copytree(tiny_image_model, tmp_path / "copy"))


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal_of(tmp_path / "none").startswith("--image-model: ")


def test_broken_weights_are_refused(copy: Path) -> None:
    (copy / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"broken")

    assert "cannot be loaded" in refusal_of(copy)


def test_pickled_weights_are_not_read(copy: Path) -> None:
    weights = copy / "unet" / "diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))

    assert "cannot be loaded" in refusal_of(copy)


@pytest.mark.parametrize("name", ["NoSuchPipeline", "UNet2DConditionModel"])
def test_a_model_of_another_kind_is_refused(copy: Path, name: str) -> None:
    index = copy / "model_index.json"
    index.write_text(json.dumps({**json.loads(index.read_text()), "_class_name": name}))

    assert "cannot be loaded" in refusal_of(copy)
