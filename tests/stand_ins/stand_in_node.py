"""A node that follows the standard's shapes and misbehaves on demand."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler

from http_stand_in import Call, StandIn, reply_json


class StandInNode(StandIn):
    """Takes registrations; `mood` is what the next calls meet.

    Moods: "fine", "500", "1010", "page" (no JSON), "hang" (no answer before `release`), "cut".
    """

    def __init__(self) -> None:
        super().__init__()
        self.mood = "fine"
        self.release = threading.Event()

    def answer(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        if self.mood == "hang":
            self.release.wait(30)
        if self.mood == "500":
            reply_json(handler, 500, {"code": 1001, "message": "out of order"})
        elif self.mood == "1010":
            reply_json(handler, 200, {"code": 1010, "message": "Unsupported function"})
        elif self.mood == "page":
            reply_json(handler, 200, "<html>")
        elif self.mood == "cut":
            handler.close_connection = True
        else:
            reply_json(handler, 200, {"code": 0, "message": "ok"})

    def heard(self) -> list[str]:
        """What was called since the last time, shortly."""
        calls, self.calls = self.calls, []
        return [call.path.removeprefix("/api/v0/ai/") for call in calls]

    def __exit__(self, *_: object) -> None:
        self.release.set()
        super().__exit__()
