"""Which server gets a request: the least busy one, counted over all processes of this service."""

from __future__ import annotations

from collections.abc import Sequence

from workers.contract import keys
from workers.contract.redis_client import Client, Scripts
from workers.contract.registrations import Registration, digest

MARK_S = 30.0
"""Life of a request's mark, so that a process that is killed leaves none for ever."""

ASIDE_S = 30.0
"""For how long a server that did not answer is not asked."""


class Load:
    """What the servers have to do.

    Args:
        client: connection to the Redis that counts.
        mark_s: life of a request's mark unless `keep` renews it.
        aside_s: for how long a server is set aside.
    """

    def __init__(self, client: Client, mark_s: float = MARK_S, aside_s: float = ASIDE_S) -> None:
        self._redis = client
        self._scripts = Scripts(client)
        self._mark_ms = int(mark_s * 1000)
        self._aside_ms = int(aside_s * 1000)

    def take(self, servers: Sequence[Registration], request_id: str) -> Registration | None:
        """Choose a server for a request, and count the request there.

        Args:
            servers: of one model, at least one, always in the same order.
            request_id: the request's.

        Returns:
            The server; None = all of them are set aside.
        """
        names = [keys.turn(digest(servers[0].model))]
        for each in servers:
            names += [keys.forwarded(each.id), _aside_key(each)]
        number = self._scripts.take(keys=names, args=[request_id, self._mark_ms])
        return servers[number - 1] if number else None

    def keep(self, server: Registration, request_id: str) -> None:
        """Say that the server still works on the request; to be repeated within `mark_s`."""
        self._scripts.keep(keys=[keys.forwarded(server.id)], args=[request_id, self._mark_ms])

    def release(self, server: Registration, request_id: str) -> None:
        """Say that the server is done with the request."""
        self._redis.zrem(keys.forwarded(server.id), request_id)

    def set_aside(self, server: Registration) -> None:
        """Do not ask a server for a while; one that registers with another address is new."""
        self._redis.set(_aside_key(server), server.model, px=self._aside_ms)


def _aside_key(server: Registration) -> str:
    return keys.set_aside(digest(server.api))
