"""The one way to a Redis connection, and the Lua scripts that run there."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import redis

from workers.contract import keys

MAX_CONNECTIONS = 24
"""Of one process: who needs another one waits until one is free. No call of ours blocks."""

POOL_TIMEOUT_S = 10
"""Longest wait for a free connection."""

Client: TypeAlias = Any
"""A `redis.Redis` that gives bytes; redis-py cannot say in types which of its replies are bytes."""


def connect(url: str) -> Client:
    """A client that gives and takes bytes; connects when first used.

    Args:
        url: redis://, rediss:// or unix:// address.
    """
    pool = redis.BlockingConnectionPool.from_url(
        url,
        socket_timeout=5,
        socket_connect_timeout=5,
        health_check_interval=25,
        max_connections=MAX_CONNECTIONS,
        timeout=POOL_TIMEOUT_S,
    )
    return redis.Redis(connection_pool=pool)


@cache
def _source(name: str) -> str:
    """A script, which finds the name of the channel of news in `NEWS`."""
    script = (files("workers.contract") / "lua" / f"{name}.lua").read_text()
    return f"local NEWS = '{keys.NEWS}'\n{script}"


class Scripts:
    """The Lua scripts, registered with one client.

    Args:
        client: where they run.
    """

    def __init__(self, client: Client) -> None:
        self.create = client.register_script(_source("create"))
        self.claim = client.register_script(_source("claim"))
        self.publish = client.register_script(_source("publish"))
        self.finish = client.register_script(_source("finish"))
        self.requeue = client.register_script(_source("requeue"))
        self.cancel = client.register_script(_source("cancel"))
        self.take = client.register_script(_source("take"))
        self.keep = client.register_script(_source("keep"))


def text(value: Any) -> str:
    """A reply of Redis as a string."""
    return value.decode() if isinstance(value, bytes) else str(value)
