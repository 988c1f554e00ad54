"""A real Redis for the tests of this folder: one server per run, empty for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from redis_server import running_redis

from workers.contract.redis_client import Client, connect
from workers.contract.store import JobStore


@pytest.fixture(scope="session")
def redis_server_url() -> Iterator[str]:
    """Where the server of this run listens."""
    with running_redis() as url:
        yield url


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
