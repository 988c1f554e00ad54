"""gunicorn's gevent worker, which lets clients read their answer and answers in JSON alone.

A socket that is closed while it still has bytes to be read resets the connection, and a reset
overtakes the answer. So what a client goes on sending is read, within limits, and thrown away.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any

from gunicorn.http.errors import ParseException
from gunicorn.workers.ggevent import GeventWorker

from api import stopping

MAX_DISCARDED_BYTES = 16 * 2**20
MAX_DISCARDING_S = 30.0
MAX_SILENCE_S = 2.0
"""Of a client whose bytes are thrown away."""

_STEP_BYTES = 256 * 1024


class Worker(GeventWorker):  # type: ignore[misc]  # gunicorn has no types
    """Serves connections; named in `api.gunicorn_config`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._idle: set[socket.socket] = set()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop: tell those who wait for the end of a job, and keep no idle connection."""
        stopping.begin()
        for client in tuple(self._idle):
            with contextlib.suppress(OSError):
                # What has arrived can still be read, and is answered. The socket beneath gevent's
                # does it: its own would make the waiting read an error.
                getattr(client, "_sock", client).shutdown(socket.SHUT_RD)
        super().handle_exit(sig, frame)

    def handle(self, listener: Any, client: socket.socket, addr: Any) -> None:
        """Serve one connection until it ends."""
        self._idle.add(client)
        try:
            super().handle(listener, client, addr)
        finally:
            self._idle.discard(client)

    def handle_request(self, listener_name: Any, req: Any, sock: socket.socket, addr: Any) -> None:
        """Answer one request, and leave the connection at the start of the next, or ended."""
        self._idle.discard(sock)
        try:
            super().handle_request(listener_name, req, sock, addr)
            if not discard_body(req.body, sock) or not self.alive:
                raise StopIteration
        except StopIteration:
            linger(sock)
            raise
        self._idle.add(sock)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer what could not be read as a request, or what failed outside the application."""
        if not isinstance(exc, Exception):
            # This process stops, and nobody waits for an answer on this connection.
            return
        # The application's libraries must not be loaded before sockets are made cooperative.
        from api.unread_request import failure, refusal

        if req is None and isinstance(exc, ParseException):
            self.log.warning("Refused what is no request: %s", exc)
            answer = refusal(exc)
        else:
            self.log.error("Request failed", exc_info=exc)
            answer = failure(getattr(req, "path", None) or "")
        with contextlib.suppress(OSError):
            client.settimeout(MAX_SILENCE_S)
            client.sendall(answer)
        linger(client)


def discard_body(body: Any, client: socket.socket) -> bool:
    """Read what the application left of a request's body.

    Args:
        body: gunicorn's; its `failed` says that an earlier read broke it.
        client: where it comes from.

    Returns:
        Whether the next request can be read after it.
    """
    if body.failed:
        return False
    before = client.gettimeout()
    try:
        client.settimeout(MAX_SILENCE_S)
        return _is_read_up(lambda: len(body.read(_STEP_BYTES)))
    except (ParseException, OSError):
        return False
    finally:
        client.settimeout(before)


def linger(client: socket.socket) -> None:
    """End the answer, then read until the client ends too (RFC 9112, section 9.6)."""
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_WR)
        client.settimeout(MAX_SILENCE_S)
        _is_read_up(lambda: len(client.recv(_STEP_BYTES)))


def _is_read_up(read: Callable[[], int]) -> bool:
    """Read until there is no more, and return whether that was within the limits."""
    deadline, left = time.monotonic() + MAX_DISCARDING_S, MAX_DISCARDED_BYTES
    while left > 0 and time.monotonic() < deadline:
        n_bytes = read()
        if n_bytes == 0:
            return True
        left -= n_bytes
    return False
