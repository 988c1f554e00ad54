from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from workers.contract.settings import Settings
from workers.launcher.announcement import Announcement, announce


class Health(BaseHTTPRequestHandler):
    answers: list[tuple[int, str]]

    def do_GET(self) -> None:
        is_known = self.headers["Authorization"] in (None, "Bearer key")
        is_asked = is_known and self.path == "/health/ready"
        status, instance = self.answers.pop(0) if is_asked else (401, "")
        body = json.dumps({"instance": instance}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    Health.answers = [(503, "me"), (200, "another"), (200, "me")]
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("key", [None, "key"])
def test_one_line_is_printed_once_the_service_is_ready(
    port: int, key: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    announcement = Announcement("127.0.0.1", port, "some-model", key, "me")

    is_ready = announce(announcement, threading.Event())

    lines = capsys.readouterr().out.splitlines()
    assert is_ready
    assert len(lines) == 1
    assert lines[0].startswith(
        f"Neodim 0.14 serves some-model on http://127.0.0.1:{port} - try: curl "
    )
    assert Health.answers == []
    assert ("YOUR-KEY" in lines[0]) == (key is not None)


def test_nothing_is_announced_when_the_start_is_given_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stopped = threading.Event()
    stopped.set()

    is_ready = announce(Announcement("127.0.0.1", 1, "m", None, "me"), stopped)

    assert not is_ready
    assert capsys.readouterr().out == ""


def test_the_address_to_try_is_one_that_can_be_reached() -> None:
    announcement = Announcement.of(Settings(listen_address="::", listen_port=80, api_key=("k",)))

    assert announcement.url == "http://[::1]:80"
    assert announcement.api_key == "k"


def test_a_service_that_does_not_answer_is_not_ready() -> None:
    is_ready = Announcement("127.0.0.1", 1, "m", None, "me").is_ready()

    assert not is_ready
