"""Whether this process has been told to stop, so that nobody is kept waiting until it is killed."""

from __future__ import annotations

from threading import Event

_told = Event()


def begin() -> None:
    """Say that the process stops soon."""
    _told.set()


def is_begun() -> bool:
    """Whether the process stops soon."""
    return _told.is_set()
