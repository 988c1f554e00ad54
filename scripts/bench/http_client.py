"""Clients of the service over HTTP, one thread each, and what they see."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bench.service import Service

PATIENCE_S = 600

Fields = Mapping[str, Any]


class RequestFailed(Exception):
    """A request of the bench was not answered with a result."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one client saw of one request.

    Args:
        start_s: when it asked; by `time.perf_counter`, like all others.
        events_s: when each piece of text came; empty where the answer came at once.
        end_s: when it had everything.
        n_tokens: tokens generated, as the service counts them.
    """

    start_s: float
    events_s: tuple[float, ...]
    end_s: float
    n_tokens: int

    @property
    def first_s(self) -> float:
        """Seconds to the first text."""
        return (self.events_s[0] if self.events_s else self.end_s) - self.start_s

    @property
    def gaps_s(self) -> list[float]:
        """Seconds between the pieces of text."""
        return [after - before for before, after in pairwise(self.events_s)]

    @property
    def token_s(self) -> float | None:
        """Seconds per token behind the first text; None for an answer of one token or piece."""
        if len(self.events_s) < 2 or self.n_tokens < 2:
            return None
        return (self.events_s[-1] - self.events_s[0]) / (self.n_tokens - 1)


def generate(service: Service, fields: Fields) -> Answer:
    """Ask through `POST /generate`.

    Raises:
        RequestFailed: the answer is no result.
    """
    start = time.perf_counter()
    with _connected(service) as connection:
        reply = _post(connection, "/generate", fields, 200)
    return Answer(start, (), time.perf_counter(), reply["generated_tokens_count"])


def stream(service: Service, fields: Fields) -> Answer:
    """Ask through `POST /v1/jobs` and follow the job's events.

    Raises:
        RequestFailed: the job was refused or did not succeed.
    """
    start = time.perf_counter()
    events: list[float] = []
    with _connected(service) as connection:
        body = {"protocol": "neodim", "request": fields}
        job_id = _post(connection, "/v1/jobs", body, 202)["id"]
        connection.request("GET", f"/v1/jobs/{job_id}/events")
        reply = connection.getresponse()
        last: tuple[str, str] | None = None
        for kind, content in read_events(iter(reply.readline, b"")):
            if kind == "delta":
                events.append(time.perf_counter())
            last = kind, content
    if last is None or last[0] != "succeeded":
        raise RequestFailed(f"the job's last event is {last}")
    n_tokens = json.loads(last[1])["progress"]["tokens_generated"]
    return Answer(start, tuple(events), time.perf_counter(), n_tokens)


def read_events(lines: Iterator[bytes]) -> Iterator[tuple[str, str]]:
    """Kind and data of each server-sent event in these lines."""
    kind, content = "", ""
    for line in lines:
        name, _, value = line.decode().rstrip("\r\n").partition(":")
        if name == "event":
            kind = value.strip()
        elif name == "data":
            content += value.strip()
        elif not name and not value:
            if kind:
                yield kind, content
            kind, content = "", ""


def run_clients(
    service: Service,
    requests: Sequence[Sequence[Fields]],
    ask: Callable[[Service, Fields], Answer],
) -> list[Answer]:
    """Let clients ask at the same time, each one request after the other.

    Args:
        service: whom they ask.
        requests: of each client.
        ask: how.

    Raises:
        RequestFailed: a request was not answered with a result.
    """

    def client(own: Sequence[Fields]) -> list[Answer]:
        return [ask(service, fields) for fields in own]

    with ThreadPoolExecutor(len(requests)) as pool:
        return [answer for answers in pool.map(client, requests) for answer in answers]


def duration_s(answers: Sequence[Answer]) -> float:
    """Seconds from the first question to the last answer."""
    return max(each.end_s for each in answers) - min(each.start_s for each in answers)


@contextmanager
def _connected(service: Service) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(service.address, service.port, timeout=PATIENCE_S)
    try:
        yield connection
    finally:
        connection.close()


def _post(
    connection: http.client.HTTPConnection, path: str, body: Fields, wanted_status: int
) -> dict[str, Any]:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    content = reply.read()
    if reply.status != wanted_status:
        raise RequestFailed(f"POST {path}: {reply.status} {content[:500].decode()}")
    parsed: dict[str, Any] = json.loads(content)
    return parsed
