"""The model servers that registered here, for as long as they repeat it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import msgspec

from workers.contract import keys
from workers.contract.redis_client import Client
from workers.contract.registrations import ModelType, Registration

MEMORY_S = 180
"""A server repeats its registration every minute; two may be lost on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server, and when it registered last, in milliseconds since the epoch."""

    registration: Registration
    registered_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredModel:
    """One model as clients see it; of servers that disagree, the first one counts.

    Args:
        api: URL at which one of its servers is called.
        n_servers: how many serve it.
        registered_ms: when one of them was last heard of, milliseconds since the epoch.
    """

    model: str
    project: str
    api: str
    type: ModelType
    n_servers: int
    registered_ms: int


class Registry:
    """The servers of one service that acts as a node.

    Args:
        client: connection to the Redis that keeps them.
        memory_s: after so long without news a server is forgotten.
    """

    def __init__(self, client: Client, memory_s: float = MEMORY_S) -> None:
        self._redis = client
        self._memory_ms = int(memory_s * 1000)

    def add(self, registrations: Iterable[Registration]) -> None:
        """Take servers, or what is new of them."""
        now_ms = int(time.time() * 1000)
        with self._redis.pipeline() as pipeline:
            for each in registrations:
                entry = msgspec.json.encode(Entry(registration=each, registered_ms=now_ms))
                pipeline.set(keys.model_server(each.id), entry, px=self._memory_ms)
                pipeline.sadd(keys.MODEL_SERVERS, each.id)
            pipeline.pexpire(keys.MODEL_SERVERS, self._memory_ms)
            pipeline.execute()

    def replace_project(self, project: str, registrations: Iterable[Registration]) -> None:
        """Let a project have these servers and no others."""
        added = list(registrations)
        ids = {each.id for each in added}
        self.add(added)
        self.remove(each for each in self._ids_of_project(project) if each not in ids)

    def remove_project(self, project: str) -> None:
        """Forget every server of a project."""
        self.remove(self._ids_of_project(project))

    def remove(self, ids: Iterable[str]) -> None:
        """Forget servers, by their ids; they need not be known."""
        ids = list(ids)
        if ids:
            with self._redis.pipeline() as pipeline:
                pipeline.delete(*map(keys.model_server, ids))
                pipeline.srem(keys.MODEL_SERVERS, *ids)
                pipeline.execute()

    def ids(self) -> set[str]:
        """Ids of the servers that were heard of lately."""
        return {each.registration.id for each in self.entries()}

    def entries(self) -> list[Entry]:
        """Every server that was heard of lately, in a fixed order; others are forgotten."""
        ids = [each.decode() for each in self._redis.smembers(keys.MODEL_SERVERS)]
        found = self._redis.mget([keys.model_server(each) for each in ids]) if ids else []
        silent = [each for each, entry in zip(ids, found, strict=True) if entry is None]
        if silent:
            self._redis.srem(keys.MODEL_SERVERS, *silent)
        entries = [msgspec.json.decode(each, type=Entry) for each in found if each is not None]
        return sorted(entries, key=lambda entry: entry.registration.identity)

    def servers(self, model: str) -> list[Registration]:
        """The servers of a model."""
        return [each.registration for each in self.entries() if each.registration.model == model]

    def models(self) -> list[RegisteredModel]:
        """Every model, once, by name."""
        entries = sorted(self.entries(), key=lambda entry: entry.registration.model)
        groups = groupby(entries, key=lambda entry: entry.registration.model)
        return [_model_of(list(group)) for _, group in groups]

    def _ids_of_project(self, project: str) -> list[str]:
        found = (entry.registration for entry in self.entries())
        return [each.id for each in found if each.project == project]


def _model_of(entries: list[Entry]) -> RegisteredModel:
    first = entries[0].registration
    return RegisteredModel(
        model=first.model,
        project=first.project,
        api=first.api,
        type=first.type,
        n_servers=len(entries),
        registered_ms=max(entry.registered_ms for entry in entries),
    )
