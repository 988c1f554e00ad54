"""The only place where the launcher reads its environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from workers.contract.settings import SETTINGS_PATH_VARIABLE

REDIS_URL_VARIABLE = "REDIS_URL"


def redis_url() -> str | None:
    """The Redis that the environment names; None when it names none."""
    return os.environ.get(REDIS_URL_VARIABLE) or None


def child_environment(settings_path: Path, n_cores: int) -> dict[str, str]:
    """The environment of the processes to start.

    Args:
        settings_path: file with the settings.
        n_cores: threads that each worker may compute with; a value that the user exported wins.
    """
    # Bars that are drawn over and over fill a log with lines.
    quiet = {} if sys.stdout.isatty() else {"TQDM_DISABLE": "1"}
    return {
        **quiet,
        "OMP_NUM_THREADS": str(n_cores),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        SETTINGS_PATH_VARIABLE: str(settings_path),
    }
