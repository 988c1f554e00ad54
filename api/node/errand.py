"""One request on its way to one server: counted while it lasts, ended when its client leaves."""

from __future__ import annotations

import http.client
import logging
from collections.abc import Iterator, Mapping
from functools import partial

import redis

from api.connection import Connection
from api.errors import problem_of
from api.node.exchange import Exchange
from api.node.load import Load
from api.node.watch import Watch
from api.rejections import ClientGone
from api.replies import to_json
from api.standard_error import render_error
from workers.contract.errors import EngineFailure
from workers.contract.http_address import HttpAddress
from workers.contract.registrations import Registration

EVENTS = "text/event-stream"
FAILURES = (OSError, http.client.HTTPException)
"""What a server that does not answer, or stops answering, looks like."""

log = logging.getLogger(__name__)


class Errand:
    """A request that `load` has given to a server.

    Args:
        server: who answers.
        address: where.
        request_id: by which the request is counted.
        load: counts it.
        connection: the client's.
        timeout_s: longest wait for the server's first byte, and between two bytes.
    """

    def __init__(
        self,
        server: Registration,
        address: HttpAddress,
        request_id: str,
        load: Load,
        connection: Connection,
        timeout_s: float,
    ) -> None:
        self._server = server
        self._request_id = request_id
        self._load = load
        self._exchange = Exchange(address, timeout_s)
        self._watch = Watch(self._exchange, connection, partial(load.keep, server, request_id))

    def begin(self, body: bytes, headers: Mapping[str, str]) -> http.client.HTTPResponse | None:
        """Send the request, and wait for the head of the answer.

        Returns:
            The head; None = the server did not answer, and is set aside.

        Raises:
            ClientGone: the client did not wait.
        """
        try:
            return self._exchange.begin(body, headers)
        except FAILURES as error:
            self.end()
            if self._watch.client_left:
                raise ClientGone("the client closed its connection") from None
            log.warning("%s at %s is set aside: %s", self._server.model, self._server.api, error)
            self._load.set_aside(self._server)
            return None

    def pieces(self, content_type: str) -> Iterator[bytes]:
        """The answer's body as it comes; a stream that breaks off ends with an error event.

        Raises:
            OSError, http.client.HTTPException: another body broke off.
        """
        try:
            yield from self._exchange.pieces()
        except FAILURES as error:
            if self._watch.client_left:
                return
            log.warning("%s at %s broke off: %s", self._server.model, self._server.api, error)
            if not content_type.startswith(EVENTS):
                raise
            yield _broken_stream()

    def end(self) -> None:
        """Let go of the server; may be called more than once."""
        self._watch.stop()
        self._exchange.close()
        try:
            self._load.release(self._server, self._request_id)
        except redis.RedisError as error:
            log.warning("a forwarded request counts for a while after its end: %s", error)


def _broken_stream() -> bytes:
    problem = problem_of(EngineFailure("the model server broke off its answer"))
    # The first line break ends a line that came in part.
    return b"\n\nevent: error\ndata: " + to_json(render_error(problem)) + b"\n\n"
