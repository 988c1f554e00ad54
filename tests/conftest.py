"""What tests of several folders share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def build(script: str, directory: Path) -> Path:
    """The directory, with the model in it that a script makes."""
    command = [sys.executable, str(SCRIPTS / script), str(directory)]
    subprocess.run(command, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="session")
def tiny_image_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a tiny image model, called tiny-pictures."""
    return build("tiny_image_model.py", tmp_path_factory.mktemp("models") / "tiny-pictures")


@pytest.fixture(scope="session")
def tiny_vision_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a tiny model that reads texts with pictures in them, called tiny-eyes."""
    return build("tiny_vision_model.py", tmp_path_factory.mktemp("models") / "tiny-eyes")
