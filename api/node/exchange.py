"""One request to one model server, and its answer as it comes."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Iterator, Mapping

from api.node.answer_head import AnswerHead, BadAnswer, read_head
from workers.contract.http_address import HttpAddress

CONNECT_S = 5.0
_PIECE_BYTES = 64 * 1024


class Exchange:
    """A request that is made once, in one thread; any other may abort it.

    Args:
        address: where the server answers.
        timeout_s: longest wait between two bytes.

    Attributes:
        has_begun: whether the first bytes of the answer's body are there.
    """

    def __init__(self, address: HttpAddress, timeout_s: float) -> None:
        self._connection = address.connect(min(CONNECT_S, timeout_s))
        self._target = address.target or "/"
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._answer: http.client.HTTPResponse | None = None
        self._is_aborted = False
        self._first_piece = b""
        self.has_begun = False

    def begin(self, body: bytes, headers: Mapping[str, str]) -> AnswerHead:
        """Send the request, and wait for the answer's head and the first bytes of its body.

        Raises:
            OSError, http.client.HTTPException: no answer came, or none that can be passed on.
        """
        self._connection.connect()
        # Kept, since the connection lets go of it when the answer ends with its closing.
        self._socket = self._connection.sock
        self._socket.settimeout(self._timeout_s)
        if self._is_aborted:
            raise ConnectionAbortedError("given up")
        self._connection.request("POST", self._target, body, dict(headers))
        self._answer = self._connection.getresponse()
        head = read_head(self._answer)
        self._first_piece = self._read_piece(self._answer)
        # http.client takes a head that breaks off for a whole one with nothing after it.
        if not self._first_piece and not head.is_framed:
            raise BadAnswer("it ended without a body")
        self.has_begun = True
        return head

    def pieces(self) -> Iterator[bytes]:
        """The answer's body, each piece as soon as it is there.

        Raises:
            OSError, http.client.HTTPException: it broke off.
        """
        assert self._answer is not None, "the exchange was begun"
        piece = self._first_piece
        while piece:
            yield piece
            piece = self._read_piece(self._answer)

    def abort(self) -> None:
        """Let whoever waits for the server fail at once."""
        self._is_aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # TLS's own method would take the session away from the thread that reads.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """End it; a server that still answers sees its client leave."""
        self._connection.close()
        if self._answer is not None:
            self._answer.close()

    def _read_piece(self, answer: http.client.HTTPResponse) -> bytes:
        """More of the body, b"" at its end."""
        piece = answer.read1(_PIECE_BYTES)
        # http.client takes the end of the connection for the end of the body, and for that of a
        # line which says that a chunk has 0 bytes.
        if not piece and self._is_aborted:
            raise ConnectionAbortedError("given up")
        if not piece and answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
        # It also counts on from a chunk's size that is below 0.
        if answer.chunked and (answer.chunk_left or 0) < 0:
            raise BadAnswer("a chunk has a size below 0")
        return piece
