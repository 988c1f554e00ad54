"""A line on a terminal that shows how far a job is."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from neodim_client.jobs import Job, JobState, Progress

BAR_WIDTH = 30

_terminal = threading.Lock()
"""Held by the one bar that is shown: others that are waited for at the same time show none."""


@contextmanager
def shown_progress(*, is_wanted: bool) -> Iterator[Callable[[Job[Any]], None] | None]:
    """Show progress while a job is waited for, where there is a terminal to show it on.

    Args:
        is_wanted: whether to show any.

    Yields:
        What to call with the job whenever it was looked at; None = nothing is shown.
    """
    stream = sys.stderr
    # There is no stderr at all in a program without a console on Windows.
    has_terminal = is_wanted and stream is not None and stream.isatty()
    if not has_terminal or not _terminal.acquire(blocking=False):
        yield None
        return
    bar = ProgressBar(stream)
    try:
        yield bar.show
    finally:
        bar.clear()
        _terminal.release()


class ProgressBar:
    """One line, written over itself.

    Args:
        stream: a terminal.
        clock: seconds that only grow.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._width = 0

    def show(self, job: Job[Any]) -> None:
        """Show a job as it stands."""
        text = line_of(job, self._clock() - self._began)
        # A line as wide as the terminal would wrap, and could not be written over.
        self._write(text[: shutil.get_terminal_size().columns - 1])

    def clear(self) -> None:
        """Take the line away."""
        if self._width:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)


def line_of(job: Job[Any], elapsed_s: float) -> str:
    """A job's state and progress in one line.

    Args:
        job: as it stands.
        elapsed_s: how long it was waited for.
    """
    progress = job.progress
    state = str(job.state)
    if job.state is JobState.QUEUED and not job.is_possible:
        state = f"queued (no worker serves {job.model} now)"
    elif job.state is not JobState.QUEUED:
        state = f"{state} {_bar(progress)}"
    return f"{state}  {elapsed_s:.0f} s"


def _bar(progress: Progress) -> str:
    """What is done of what is expected; the number alone where nothing is known of that."""
    if not progress.expected:
        return f"{progress.done} {progress.unit}"
    part = min(1.0, progress.done / progress.expected)
    bar = ("#" * round(part * BAR_WIDTH)).ljust(BAR_WIDTH, ".")
    return f"[{bar}] {progress.done}/{progress.expected} {progress.unit}"
