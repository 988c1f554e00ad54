"""Does what steps say, and waits for it."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

import httpx

from neodim_client.calls import Call
from neodim_client.exchange import Server, answer_of, failure_of
from neodim_client.steps import (
    Action,
    Done,
    Failure,
    Open,
    Outcome,
    Pause,
    Send,
    Steps,
    StreamSteps,
    Tell,
    advance,
)

T = TypeVar("T")


class Driver:
    """Drives the steps of one client.

    Args:
        http: does HTTP.
        server: whom to ask.
    """

    def __init__(self, http: httpx.Client, server: Server) -> None:
        self._http = http
        self._server = server

    def run(self, steps: Steps[T]) -> T:
        """What comes of steps."""
        hands = _Hands(self._http, self._server)
        outcome: Outcome | Failure = None
        while not isinstance(action := advance(steps, outcome), Done):
            assert not isinstance(action, Tell), "only a stream tells anything"
            outcome = hands.do(action)
        return action.value

    def iterate(self, steps: StreamSteps[T]) -> Generator[T, None, None]:
        """The items that steps tell; the connection is closed when nobody wants more."""
        hands = _Hands(self._http, self._server)
        outcome: Outcome | Failure = None
        try:
            while not isinstance(action := advance(steps, outcome), Done):
                if isinstance(action, Tell):
                    outcome = None
                    yield action.item
                else:
                    outcome = hands.do(action)
        finally:
            hands.close()


class _Hands:
    """Does single actions; keeps what was opened last."""

    def __init__(self, http: httpx.Client, server: Server) -> None:
        self._http = http
        self._server = server
        self._opened: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def do(self, action: Action) -> Outcome | Failure:
        try:
            if isinstance(action, Pause):
                time.sleep(action.seconds)
                return None
            if isinstance(action, Send):
                response = self._http.send(self._request(action.call), follow_redirects=False)
                return answer_of(response, response.content)
            if isinstance(action, Open):
                return self._open(action.call)
            return next(self._pieces, b"")
        except httpx.RequestError as error:
            return failure_of(error)

    def _request(self, call: Call[Any]) -> httpx.Request:
        return self._server.request(self._http, call)

    def _open(self, call: Call[Any]) -> Outcome:
        self.close()
        request = self._request(call)
        self._opened = self._http.send(request, stream=True, follow_redirects=False)
        if not self._opened.is_success:
            return answer_of(self._opened, self._opened.read())
        self._pieces = self._opened.iter_bytes()
        return answer_of(self._opened)

    def close(self) -> None:
        """Leave what was opened."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None
