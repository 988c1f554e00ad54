"""Checks a Redis that we did not start: reachable, new enough, and never evicting."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import redis

from workers.launcher.errors import StartRefused
from workers.launcher.redis_server import OLDEST

CONNECT_S = 5
ALLOWED = f"allowed: a Redis or Valkey that answers, {'.'.join(map(str, OLDEST))} or newer"


def check_external(url: str, source: str) -> list[str]:
    """Refuse a Redis that would lose jobs.

    Args:
        url: redis://, rediss:// or unix:// address.
        source: flag or variable that named it.

    Returns:
        What the user should know although it does not stop the start.

    Raises:
        StartRefused: it does not answer, is too old, or may evict keys.
    """
    where = f"{source}: Redis at {without_password(url)}"
    try:
        client = redis.Redis.from_url(
            url, socket_timeout=CONNECT_S, socket_connect_timeout=CONNECT_S, decode_responses=True
        )
        version = str(client.info("server")["redis_version"])
        policy = _policy(client)
    except ValueError as error:
        raise StartRefused(
            f"{source}: {without_password(url)} is no Redis address; allowed: redis://host:port/0, "
            "rediss://host:port/0 or unix:///path"
        ) from error
    except (redis.RedisError, OSError) as error:
        reason = " ".join(str(error).split())
        raise StartRefused(f"{where} cannot be used: {reason}; {ALLOWED}") from error
    refuse_old(version, where)
    if policy is None:
        return [f"{where} does not tell its maxmemory-policy; it has to be noeviction"]
    if policy != "noeviction":
        raise StartRefused(
            f"{where} has maxmemory-policy {policy} and would drop jobs; allowed: noeviction "
            "(CONFIG SET maxmemory-policy noeviction)"
        )
    return []


def without_password(url: str) -> str:
    """The address as it may be shown."""
    try:
        parts = urlsplit(url)
        secret = parts.password
    except ValueError:
        return "the address"
    return url if secret is None else url.replace(f":{secret}@", ":***@", 1)


def refuse_old(version: str, where: str) -> None:
    """Refuse a server older than what the scripts and streams need."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        raise StartRefused(f"{where} has version {version}; {ALLOWED}")


def _policy(client: Any) -> str | None:
    """The eviction policy; None where the server does not let us ask."""
    try:
        return str(client.config_get("maxmemory-policy")["maxmemory-policy"])
    except (redis.ResponseError, KeyError):
        return None
