"""The socket that a request came on: whether its client is still there, how long it may be silent.

gunicorn puts the socket into the WSGI environment; without one, as in Flask's test client, the
client counts as present.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class Connection:
    """One client's connection.

    Args:
        environ: the request's WSGI environment.
    """

    def __init__(self, environ: Mapping[str, Any]) -> None:
        self._socket: socket.socket | None = environ.get("gunicorn.socket")

    def is_open(self) -> bool:
        """Whether the client is there; one that shut down its sending side counts as gone."""
        if self._socket is None:
            return True
        # gevent's sockets wait even with MSG_DONTWAIT, unless their own timeout is 0.
        before = self._socket.gettimeout()
        try:
            self._socket.settimeout(0)
            return self._socket.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            self._restore(before)

    @contextmanager
    def read_timeout(self, timeout_s: float) -> Iterator[None]:
        """Let reads within the block fail after a silence of so long."""
        if self._socket is None:
            yield
            return
        before = self._socket.gettimeout()
        self._socket.settimeout(timeout_s)
        try:
            yield
        finally:
            self._restore(before)

    def _restore(self, timeout_s: float | None) -> None:
        if self._socket is not None and self._socket.fileno() >= 0:
            self._socket.settimeout(timeout_s)
