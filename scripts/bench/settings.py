"""What the benches take from the environment, and what they give their child processes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def child_environment(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with some variables changed."""
    return {**os.environ, **changes}


def cache_directory() -> Path:
    """Where this user's programs keep what they could make again (XDG base directories)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
