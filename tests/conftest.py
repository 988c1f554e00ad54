"""What tests of several folders share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
SERVICES = ("e2e", "integration")
"""Folders of the tests that start services and wait for them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests run one after the other in one process, where there are several.

    All that wait for services are one group, for they would be in each other's way; of the others,
    those of one file, which share what takes long to make.
    """
    here = Path(__file__).parent
    for item in items:
        path = item.path.relative_to(here)
        group = "services" if path.parts[0] in SERVICES else str(path)
        item.add_marker(pytest.mark.xdist_group(group))


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
