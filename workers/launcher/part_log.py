"""Reads in supervisor's own log which part of the service ended, and how."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.2
EXITED = re.compile(r"^\S+ \S+ \w+ exited: (?P<name>\S+) \((?P<how>[^;]*);")
CANNOT_START = re.compile(r"^\S+ \S+ \w+ spawnerr: (?P<how>.*)$")


@dataclass(frozen=True)
class PartEnded:
    """A part ended although nobody stopped it.

    Args:
        name: of the program.
        how: in words, `exit status 1` or `terminated by SIGKILL`.
    """

    name: str
    how: str

    @property
    def exit_code(self) -> int | None:
        """Its exit status; None when a signal ended it."""
        found = re.match(r"exit status (\d+)", self.how)
        return None if found is None else int(found[1])


def parse_line(line: str) -> PartEnded | None:
    """What a line of supervisor 4.3's log says of a part that ended; None for other lines."""
    if found := EXITED.match(line):
        return PartEnded(found["name"], found["how"])
    if found := CANNOT_START.match(line):
        return PartEnded("a part", found["how"])
    return None


def follow(path: Path, stopped: threading.Event) -> Iterator[PartEnded]:
    """The parts that end, as the log says so, until `stopped` is set."""
    with path.open(encoding="utf-8", errors="replace") as file:
        line = ""
        while not stopped.wait(0 if line.endswith("\n") else POLL_S):
            line = file.readline() if line.endswith("\n") else line + file.readline()
            if line.endswith("\n") and (ended := parse_line(line)):
                yield ended
