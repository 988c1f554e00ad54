"""The API with its path that forwards, under gunicorn and gevent, with two processes."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest

from api.settings import Settings
from workers.contract.settings import SETTINGS_PATH_VARIABLE, write_settings

SETTINGS = {"model_name": "own", "node_key": ("k",)}


@contextmanager
def serve(redis_url: str, folder: Path, log: IO[bytes] | None = None) -> Iterator[int]:
    """Run it, and give its port.

    Args:
        redis_url: of its Redis.
        folder: for its settings.
        log: takes what it has to say, None = the console.
    """
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    path = folder / "settings.json"
    settings = Settings(redis_url=redis_url, listen_port=port, api_processes=2, **SETTINGS)
    write_settings(settings, path)
    command = [sys.executable, "-m", "gunicorn", "--config", "python:api.gunicorn_config"]
    command += ["--pythonpath", str(Path(__file__).parent), "forwarding_app:create_app()"]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(SETTINGS_PATH_VARIABLE, str(path))
        process = subprocess.Popen(command, stderr=log)
    try:
        wait_until(lambda: _listens(port))
        yield port
    finally:
        process.terminate()
        process.wait()


def wait_until(is_so: Callable[[], object]) -> None:
    for _ in range(1000):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
