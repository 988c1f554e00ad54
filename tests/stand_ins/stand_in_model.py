"""A model server that says its own name, streams, and misbehaves on demand."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler

from http_stand_in import Call, StandIn, reply_json

from workers.contract.registrations import ModelType, Registration

EVENT = 'data: {{"text": "{} \u4f60\u597d"}}\n\n'


class StandInModel(StandIn):
    """Answers as `mood` says: "fine", "refuse", "stream", "cut", "cut stream", "hang".

    "hang" and "stream" go on, the latter after its first event, when `release` is set.
    """

    def __init__(self, name: str, mood: str = "fine") -> None:
        super().__init__()
        self.name, self.mood = name, mood
        self.release = threading.Event()
        self.client_left = threading.Event()

    def registration(self, model: str = "m", **fields: object) -> Registration:
        known = {"project": "p", "model": model, "cid": self.name, "type": ModelType.TEXT}
        known["api"] = f"{self.url}/v1/chat/completions"
        return Registration(**{**known, **fields})

    def answer(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        if self.mood == "hang":
            self._wait_for_release(handler)
        if "stream" in self.mood:
            self._stream(handler)
        elif self.mood == "cut":
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b"{")
            handler.close_connection = True
        elif self.mood == "refuse":
            reply_json(handler, 429, {"code": 1, "message": f"{self.name} is busy"})
        else:
            reply_json(handler, 200, {"I am": self.name, "heard": call.body.decode()})

    def _stream(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        self._chunk(handler, EVENT.format(f"I am {self.name}"))
        if self.mood == "cut stream":
            handler.close_connection = True
            return
        self._wait_for_release(handler)
        self._chunk(handler, "data: [DONE]\n\n")
        handler.wfile.write(b"0\r\n\r\n")

    def _wait_for_release(self, handler: BaseHTTPRequestHandler) -> None:
        """Wait, and notice when whoever asked leaves."""
        handler.connection.settimeout(0.02)
        while not self.release.is_set():
            try:
                if handler.connection.recv(1) == b"":
                    self.client_left.set()
                    return
            except TimeoutError:
                pass
        handler.connection.settimeout(5)

    @staticmethod
    def _chunk(handler: BaseHTTPRequestHandler, text: str) -> None:
        content = text.encode()
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def __exit__(self, *_: object) -> None:
        self.release.set()
        super().__exit__()
