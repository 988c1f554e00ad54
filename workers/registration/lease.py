"""Sees to it that one worker at a time speaks with a node."""

from __future__ import annotations

from workers.contract import keys
from workers.contract.redis_client import Client
from workers.contract.registrations import digest

LEASE_S = 20.0
"""Longer than a call to a node may take, so that nobody else calls meanwhile."""


class RegistrarLease:
    """The right to speak with one node.

    Args:
        client: connection to the Redis that gives it.
        node: the node's URL, without a key.
        worker: who asks for it.
        lease_s: for how long it is given.
    """

    def __init__(self, client: Client, node: str, worker: str, lease_s: float = LEASE_S) -> None:
        self._redis = client
        self._key = keys.registrar(digest(node))
        self._worker = worker
        self._lease_ms = int(lease_s * 1000)

    def hold(self) -> bool:
        """Take or renew it; False = another worker has it."""
        if self._redis.set(self._key, self._worker, nx=True, px=self._lease_ms):
            return True
        if self._redis.get(self._key) != self._worker.encode():
            return False
        return bool(self._redis.pexpire(self._key, self._lease_ms))

    def release(self) -> None:
        """Give it back, if it is ours."""
        if self._redis.get(self._key) == self._worker.encode():
            self._redis.delete(self._key)
