"""Lets the tests of this folder import the benches, which are no part of the installed packages."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
