"""What a protocol is to the rest of the API: how it reads requests, writes results and errors.

A protocol is one package that builds a `Protocol` and a `Room`; `api.app` lists them, and nothing
else has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from flask_smorest import Blueprint

from api.errors import ErrorBody
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
        prefixes: starts of their paths, for which `error_body` writes the errors.
        error_body: how errors are written there.
        suffixes: ends of their paths, where those begin like another room's.
    """

    blueprint: Blueprint
    prefixes: tuple[str, ...]
    error_body: ErrorBody
    suffixes: tuple[str, ...] = ()


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


def error_body_by_path(rooms: Sequence[Room], default: ErrorBody) -> Callable[[str], ErrorBody]:
    """How errors are written, by path: that of a suffix or the longest prefix, else the default."""
    bodies = {prefix: room.error_body for room in rooms for prefix in room.prefixes}
    longest_first = sorted(bodies, key=len, reverse=True)

    def error_body(path: str) -> ErrorBody:
        of_ends = (room.error_body for room in rooms if path.endswith(room.suffixes))
        of_starts = (bodies[prefix] for prefix in longest_first if path.startswith(prefix))
        return next(chain(of_ends, of_starts), default)

    return error_body
