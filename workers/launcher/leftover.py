"""Ends a Redis of ours that outlived its launcher, before another one opens the same files."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from workers.launcher.errors import StartRefused

PATIENCE_S = 15
POLL_S = 0.05


def end_leftover(pid_file: Path, configuration: Path) -> bool:
    """Stop the server that wrote a pid file, if it still runs with this configuration.

    Args:
        pid_file: written by the server.
        configuration: its configuration file, the last of its arguments.

    Returns:
        Whether there was one.

    Raises:
        StartRefused: it does not end.
    """
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return False
    if not _runs_with(pid, configuration):
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_S
    while _runs_with(pid, configuration):
        if time.monotonic() > deadline:
            raise StartRefused(f"the queue of an earlier start (process {pid}) does not end")
        time.sleep(POLL_S)
    return True


def _runs_with(pid: int, configuration: Path) -> bool:
    """Whether a process has the file among its arguments: its number may be another's by now."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(configuration) in arguments
