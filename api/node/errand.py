"""One request on its way to one server: counted while it lasts, ended when its client leaves."""

from __future__ import annotations

import contextlib
import errno
import http.client
import logging
from collections.abc import Iterator, Mapping
from functools import partial

import redis

from api.connection import Connection
from api.errors import problem_of
from api.node.answer_head import AnswerHead
from api.node.exchange import Exchange
from api.node.load import Load
from api.node.watch import Watch
from api.rejections import ClientGone
from api.replies import to_json
from api.standard_error import render_error
from workers.contract.errors import EngineFailure
from workers.contract.http_address import HttpAddress
from workers.contract.registrations import Registration

FAILURES = (OSError, http.client.HTTPException)
"""What a server that does not answer, or stops answering, looks like."""

SHOWN_CHARACTERS = 200

log = logging.getLogger(__name__)


class Errand:
    """A request that `load` has given to a server.

    Args:
        server: who answers.
        address: where.
        request_id: by which the request is counted.
        load: counts it.
        connection: the client's.
        timeout_s: longest wait for the first bytes of the answer's body, and between two bytes.
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
        keep = partial(load.keep, server, request_id)
        self._watch = Watch(self._exchange, connection, keep, timeout_s)

    def begin(self, body: bytes, headers: Mapping[str, str]) -> AnswerHead | None:
        """Send the request, and wait for the answer's head and the first bytes of its body.

        Returns:
            The head; None = the server gave no answer that can be passed on, and is set aside.

        Raises:
            ClientGone: the client did not wait.
        """
        try:
            with contextlib.ExitStack() as on_failure:
                on_failure.callback(self.end)
                head = self._exchange.begin(body, headers)
                on_failure.pop_all()
                return head
        except FAILURES as error:
            if self._watch.client_left:
                raise ClientGone("the client closed its connection") from None
            self._log("is set aside", error)
            self._load.set_aside(self._server)
            return None

    def pieces(self, is_events: bool) -> Iterator[bytes]:
        """The answer's body as it comes; a stream that breaks off ends with an error event.

        Args:
            is_events: whether the body is a stream of events.

        Raises:
            ConnectionResetError: another body broke off, or nobody reads it.
        """
        try:
            yield from self._exchange.pieces()
        except FAILURES as error:
            if not self._watch.client_left:
                self._log("broke off", error)
            if self._watch.client_left or not is_events:
                # gunicorn closes the connection at this error, and has nothing to say about it.
                raise ConnectionResetError(errno.ECONNRESET, "the answer broke off") from None
            yield _broken_stream()

    def end(self) -> None:
        """Let go of the server; may be called more than once."""
        self._watch.stop()
        self._exchange.close()
        try:
            self._load.release(self._server, self._request_id)
        except redis.RedisError as error:
            log.warning("a forwarded request counts for a while after its end: %s", error)

    def _log(self, what: str, error: Exception) -> None:
        """Say on one line what became of the server; its own words may hold any characters."""
        reason = "no answer in time" if self._watch.is_late else repr(error)[:SHOWN_CHARACTERS]
        log.warning("%s at %s %s: %s", self._server.model, self._server.api, what, reason)


def _broken_stream() -> bytes:
    problem = problem_of(EngineFailure("the model server broke off its answer"))
    # The first line break ends a line that came in part.
    return b"\n\nevent: error\ndata: " + to_json(render_error(problem)) + b"\n\n"
