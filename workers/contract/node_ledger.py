"""What was registered with a node and how that went: the same for every worker and for the API."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from workers.contract import keys
from workers.contract.redis_client import Client
from workers.contract.registrations import Registration, digest, node_address

MEMORY_S = 24 * 3600
"""After so long without news a node has forgotten us, and we forget what it was told."""

STATUS_TTL_S = 180

_WHOLE = "whole:"
"""Start of the fields that name projects; the others are ids of servers."""


class NodeState(StrEnum):
    """How things stand with a node."""

    IDLE = "idle"
    """There is nothing to register."""
    REGISTERED = "registered"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """How things stand with one node.

    Args:
        node: its URL, without a key.
        error: what went wrong last, "" = nothing.
        n_registered: model servers that it knows of.
        since_ms: since when state and error are as they are, milliseconds since the epoch.
    """

    node: str
    state: NodeState
    error: str = ""
    n_registered: int = 0
    since_ms: int = 0


class NodeLedger:
    """One node's account.

    Args:
        client: connection to the Redis that keeps it.
        node: the node's URL, without a key.
    """

    def __init__(self, client: Client, node: str) -> None:
        self.node = node
        self._redis = client
        self._registered_key = keys.registered(digest(node))
        self._status_key = keys.node_status(digest(node))

    def registered(self) -> list[Registration]:
        """What the node was told of and has not been told to forget."""
        found = self._redis.hgetall(self._registered_key)
        return [
            msgspec.json.decode(entry, type=Registration)
            for field, entry in found.items()
            if not field.startswith(_WHOLE.encode())
        ]

    def is_whole(self, project: str) -> bool:
        """Whether a project was registered as a whole, so that it is ours alone."""
        return bool(self._redis.hexists(self._registered_key, _WHOLE + project))

    def record(self, registrations: Sequence[Registration]) -> None:
        """Note what the node has taken: one server, or in one go several of a project."""
        fields = {each.id: msgspec.json.encode(each) for each in registrations}
        if len(registrations) > 1:
            fields[_WHOLE + registrations[0].project] = b"1"
        with self._redis.pipeline() as pipeline:
            pipeline.hset(self._registered_key, mapping=fields)
            pipeline.expire(self._registered_key, MEMORY_S)
            pipeline.execute()

    def forget(self, registrations: Iterable[Registration]) -> None:
        """Note what the node does not have any more; at least one."""
        self._redis.hdel(self._registered_key, *(each.id for each in registrations))

    def forget_project(self, project: str) -> None:
        """Note that the node does not have a project any more."""
        self._redis.hdel(self._registered_key, _WHOLE + project)

    def report(self, state: NodeState, error: str, n_registered: int) -> None:
        """Say how things stand; to be repeated well within `STATUS_TTL_S`."""
        before = self.status()
        now_ms = int(time.time() * 1000)
        is_news = before is None or (before.state, before.error) != (state, error)
        status = NodeStatus(
            node=self.node,
            state=state,
            error=error,
            n_registered=n_registered,
            since_ms=now_ms if is_news or before is None else before.since_ms,
        )
        self._redis.set(self._status_key, msgspec.json.encode(status), ex=STATUS_TTL_S)

    def status(self) -> NodeStatus | None:
        """How things stand; None = nobody has said anything lately."""
        found = self._redis.get(self._status_key)
        return None if found is None else msgspec.json.decode(found, type=NodeStatus)


def node_statuses(client: Client, node_urls: Iterable[str]) -> list[NodeStatus]:
    """How things stand with nodes; those of which nobody has said anything lately are left out.

    Args:
        client: connection to the Redis of the service.
        node_urls: as the settings name them.
    """
    ledgers = [NodeLedger(client, str(node_address(url))) for url in node_urls]
    return [status for ledger in ledgers if (status := ledger.status()) is not None]
