"""The directories of one running service, and the lock that keeps a second one out of them."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from workers.contract.settings import Settings, default_of, option_fields
from workers.launcher.errors import BadFlag

FLAG = "--data-dir"
ALLOWED = "allowed: a directory that this user may write to"
ROOT = Path(__file__).resolve().parents[2]
"""The checkout: the processes run here, and the default data directory is made here."""


@dataclass(frozen=True)
class Directories:
    """Where a service keeps its files.

    Args:
        data: the data directory, absolute.
    """

    data: Path

    @property
    def run(self) -> Path:
        """Files that matter only while the service runs."""
        return self.data / "run"

    @property
    def redis(self) -> Path:
        """The files of our own Redis."""
        return self.data / "redis"


def make_directories(settings: Settings) -> Directories:
    """Make the data directory, readable by this user alone: it holds what people wrote.

    Raises:
        BadFlag: it cannot be made or written to.
    """
    default = {option.name: default_of(option) for option in option_fields()}["data_dir"]
    data = ROOT / default if settings.data_dir == default else Path(settings.data_dir).absolute()
    directories = Directories(data)
    try:
        for path in (data, directories.run, directories.redis):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadFlag(FLAG, str(data), f"cannot be used: {error.strerror}; {ALLOWED}") from error
    if not os.access(directories.run, os.W_OK):
        raise BadFlag(FLAG, str(data), f"cannot be used: this user may not write there; {ALLOWED}")
    return directories


def lock(directories: Directories) -> IO[str]:
    """Take the data directory for this process; it is given back when the process ends.

    Returns:
        The locked file, to be kept open.

    Raises:
        BadFlag: another service has it.
    """
    file = (directories.run / "lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        owner = file.read().strip() or "unknown"
        file.close()
        problem = f"is in use by another Neodim (process {owner}); allowed: a directory of its own"
        raise BadFlag(FLAG, str(directories.data), problem) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def write_private(path: Path, text: str) -> None:
    """Write a file that this user alone can read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
