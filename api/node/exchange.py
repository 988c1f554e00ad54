"""One request to one model server, and its answer as it comes."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Iterator, Mapping

from workers.contract.http_address import HttpAddress

CONNECT_S = 5.0
_PIECE_BYTES = 64 * 1024


class Exchange:
    """A request that is made once, in one thread; any other may abort it.

    Args:
        address: where the server answers.
        timeout_s: longest wait for its first byte, and between two bytes.
    """

    def __init__(self, address: HttpAddress, timeout_s: float) -> None:
        self._connection = address.connect(min(CONNECT_S, timeout_s))
        self._target = address.target or "/"
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._answer: http.client.HTTPResponse | None = None
        self._is_aborted = False

    def begin(self, body: bytes, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        """Send the request, and wait for the head of the answer.

        Raises:
            OSError, http.client.HTTPException: no answer came, or none of HTTP.
        """
        self._connection.connect()
        # Kept, since the connection lets go of it when the answer ends with its closing.
        self._socket = self._connection.sock
        self._socket.settimeout(self._timeout_s)
        if self._is_aborted:
            raise ConnectionAbortedError("given up")
        self._connection.request("POST", self._target, body, dict(headers))
        self._answer = self._connection.getresponse()
        return self._answer

    def pieces(self) -> Iterator[bytes]:
        """The answer's body, each piece as soon as it is there.

        Raises:
            OSError, http.client.HTTPException: it broke off.
        """
        assert self._answer is not None, "the exchange was begun"
        while piece := self._answer.read1(_PIECE_BYTES):
            yield piece
        # http.client takes the end of the connection for the end of the body.
        if self._answer.length:
            raise http.client.IncompleteRead(b"", self._answer.length)

    def abort(self) -> None:
        """Let whoever waits for the server fail at once."""
        self._is_aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it; a server that still answers sees its client leave."""
        self._connection.close()
        if self._answer is not None:
            self._answer.close()
