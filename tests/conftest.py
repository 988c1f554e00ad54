"""What tests of several folders share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "tiny_image_model.py"


@pytest.fixture(scope="session")
def tiny_image_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a tiny image model, called tiny-pictures."""
    directory = tmp_path_factory.mktemp("models") / "tiny-pictures"
    subprocess.run([sys.executable, str(SCRIPT), str(directory)], check=True, capture_output=True)
    return directory
