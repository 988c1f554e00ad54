"""What workers say of themselves, and what the API may conclude from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from workers.contract import keys
from workers.contract.redis_client import Client

WORKER_TTL_S = 12
"""A worker that was not heard of for so long does not count any more."""


class WorkerState(StrEnum):
    """What a worker is doing."""

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"


class WorkerKind(StrEnum):
    """What a worker makes."""

    TEXT = "text"
    IMAGE = "image"
    EDITING = "editing"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCard:
    """A worker's description of itself.

    Args:
        model: name of the model it serves.
        slots: sequences, or pictures, that it makes at once.
        max_length: tokens that one sequence may have, prompt included; pixels of a picture's side.
        host: name of the machine or container it runs on, where `pid` is its process.
        started_ms: when the process started, milliseconds since the epoch.
        step: number of the engine's last step; stands still when the engine hangs.
        kind: what it makes.
        cid: twelve hex digits by which nodes tell it from others, also after a restart.
        reads_pictures: whether its prompts may have pictures.
    """

    name: str
    model: str
    state: WorkerState
    slots: int
    max_length: int
    host: str
    pid: int
    started_ms: int
    step: int = 0
    kind: WorkerKind = WorkerKind.TEXT
    cid: str = ""
    reads_pictures: bool = False


class Fleet:
    """The workers of one service.

    Args:
        client: connection to the Redis where they report.
    """

    def __init__(self, client: Client) -> None:
        self._redis = client

    def report(self, card: WorkerCard) -> None:
        """Say that this worker lives, and how; to be repeated well within `WORKER_TTL_S`."""
        with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.set(keys.worker(card.name), msgspec.json.encode(card), ex=WORKER_TTL_S)
            pipeline.sadd(keys.WORKERS, card.name)
            pipeline.execute()

    def leave(self, name: str) -> None:
        """Say that this worker is gone."""
        self._redis.delete(keys.worker(name))
        self._redis.srem(keys.WORKERS, name)

    def workers(self) -> list[WorkerCard]:
        """Every worker that was heard of lately; names of others are forgotten."""
        names = [name.decode() for name in self._redis.smembers(keys.WORKERS)]
        cards = self._redis.mget([keys.worker(name) for name in names]) if names else []
        silent = [name for name, card in zip(names, cards, strict=True) if card is None]
        if silent:
            self._redis.srem(keys.WORKERS, *silent)
        return [msgspec.json.decode(card, type=WorkerCard) for card in cards if card is not None]
