"""An HTTP server in a thread that keeps what it was sent: the base of stand-ins."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Call:
    """One request that came."""

    path: str
    body: bytes
    headers: dict[str, str]
    method: str = "POST"

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class StandIn(ABC):
    """Runs within a `with` block; `answer` says what to do with a request."""

    def __init__(self) -> None:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                call = Call(self.path, body, dict(self.headers.items()), self.command)
                stand_in.calls.append(call)
                stand_in.answer(self, call)

            do_GET = do_DELETE = do_POST

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Clients that leave are part of the tests."""

        self.calls: list[Call] = []
        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @abstractmethod
    def answer(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        """Answer one call."""

    def __enter__(self) -> Any:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """From now on nobody listens."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def reply_json(handler: BaseHTTPRequestHandler, status: int, body: Any) -> None:
    """Send a JSON answer."""
    content = json.dumps(body, ensure_ascii=False).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
