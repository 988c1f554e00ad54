"""A model server whose answers are given byte by byte."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler

from http_stand_in import Call
from stand_in_model import StandInModel


class RawModel(StandInModel):
    """Sends each piece as it is, with a pause after it, and then ends the connection.

    Args:
        pieces: of the answer.
        endless: what comes after them again and again, b"" = nothing.
    """

    def __init__(
        self, name: str, pieces: Sequence[bytes], endless: bytes = b"", pause_s: float = 0.0
    ) -> None:
        super().__init__(name)
        self._pieces, self._endless, self._pause_s = pieces, endless, pause_s

    def answer(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            for piece in itertools.chain(self._pieces, self._without_end()):
                handler.wfile.write(piece)
                if self.release.wait(self._pause_s):
                    return

    def _without_end(self) -> Iterator[bytes]:
        return itertools.repeat(self._endless) if self._endless else iter(())


def lines(*head: str) -> bytes:
    """The head of an answer, 200 unless it begins with another status line."""
    status = () if head[:1] and head[0].startswith("HTTP/") else ("HTTP/1.1 200 OK",)
    return "".join(f"{line}\r\n" for line in (*status, *head, "")).encode("latin-1")
