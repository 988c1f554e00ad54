"""What a protocol is to the rest of the API: how it reads requests, writes results and errors.

A protocol is one package that builds a `Protocol` and a `Room`; `api.app` lists them, and nothing
else has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

from flask_smorest import Blueprint

from api.errors import ErrorAnswer, ErrorBody, ErrorStatus, Problem, status_of_table
from api.settings import Settings
from workers.contract.errors import InvalidParams
from workers.contract.job_body import Job
from workers.contract.job_record import JobRecord


def _as_it_is(error: InvalidParams) -> InvalidParams:
    return error


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One protocol.

    Args:
        name: by which jobs and `/v1/jobs` know it.
        load: translates a request's JSON object; raises `RequestRejected`.
        render: writes the result of a record that has one.
        rename: turns an error about a canonical job into one about the protocol's own fields.
        progress: names of what is done and what is expected, in a job's progress.
    """

    name: str
    load: Callable[[Mapping[str, Any], Settings], Job]
    render: Callable[[JobRecord], dict[str, Any]]
    rename: Callable[[InvalidParams], InvalidParams] = _as_it_is
    progress: tuple[str, str] = ("tokens_generated", "tokens_expected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Endpoints that belong together.

    Args:
        blueprint: the endpoints.
        error_body: how errors are written there.
        error_status: which status they have there.
        prefixes: starts of the paths where that counts.
        paths: whole paths where it counts, whatever they start with; `*` stands for anything.
    """

    blueprint: Blueprint
    error_body: ErrorBody
    error_status: ErrorStatus = status_of_table
    prefixes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def answer_error(self, problem: Problem) -> tuple[dict[str, Any], int]:
        """An error as it is answered there: body and status."""
        return self.error_body(problem), self.error_status(problem)


class Protocols:
    """The protocols that a service speaks.

    Args:
        protocols: each of them.
    """

    def __init__(self, protocols: Sequence[Protocol]) -> None:
        self._by_name = {each.name: each for each in protocols}

    def named(self, name: str) -> Protocol:
        """The protocol of a name.

        Raises:
            InvalidParams: there is none.
        """
        if name not in self._by_name:
            allowed = ", ".join(sorted(self._by_name))
            raise InvalidParams("protocol", f"{name[:40]!r} is not known; allowed are {allowed}")
        return self._by_name[name]

    def render(self, record: JobRecord) -> dict[str, Any] | None:
        """A record's result as its protocol writes it; None while there is none."""
        return None if record.result is None else self._by_name[record.protocol].render(record)

    def progress_names(self, record: JobRecord) -> tuple[str, str]:
        """What a record's protocol calls the work that is done, and all there is."""
        return self._by_name[record.protocol].progress


def error_answer_by_path(rooms: Sequence[Room], default: Room) -> Callable[[str], ErrorAnswer]:
    """How errors are answered, by path.

    As in the room that names the path; else in that of the longest prefix, else in the default.
    """
    by_path = [(path, room) for room in rooms for path in room.paths]
    by_prefix = [(prefix, room) for room in rooms for prefix in room.prefixes]
    longest_first = sorted(by_prefix, key=lambda each: len(each[0]), reverse=True)

    def error_answer(path: str) -> ErrorAnswer:
        named = (room for pattern, room in by_path if fnmatchcase(path, pattern))
        started = (room for prefix, room in longest_first if path.startswith(prefix))
        return next(chain(named, started), default).answer_error

    return error_answer
