"""The one way to a Redis connection, and the Lua scripts that run there."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import redis

BLOCK_SLICE_S = 2.0
"""Longest single blocking call: redis-py 8 gives every socket 5 s, so longer waits are cut."""

MAX_CONNECTIONS = 4096

Client: TypeAlias = Any
"""A `redis.Redis` that gives bytes; redis-py cannot say in types which of its replies are bytes."""


def connect(url: str) -> Client:
    """A client that gives and takes bytes; connects when first used.

    Args:
        url: redis://, rediss:// or unix:// address.
    """
    return redis.Redis.from_url(
        url,
        socket_timeout=5,
        socket_connect_timeout=5,
        health_check_interval=25,
        max_connections=MAX_CONNECTIONS,
    )


@cache
def _source(name: str) -> str:
    return (files("workers.contract") / "lua" / f"{name}.lua").read_text()


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
