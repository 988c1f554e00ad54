"""Does what some one worker of a service has to do: see to lost workers' jobs and lost tickets."""

from __future__ import annotations

from collections import Counter

from celery import Celery

from workers.contract import keys
from workers.contract.attempts import AttemptStore
from workers.contract.fleet import Fleet
from workers.contract.redis_client import Client
from workers.contract.tickets import top_up

SWEEP_S = 1.0
"""From one sweep to the next."""


class Sweeper:
    """Sweeps for as long as no other worker does.

    Args:
        client: connection to the service's Redis.
        store: the job records.
        fleet: every worker.
        tickets: sends what is missing.
        worker: this worker's name.
    """

    def __init__(
        self, client: Client, store: AttemptStore, fleet: Fleet, tickets: Celery, worker: str
    ) -> None:
        self._redis = client
        self._store = store
        self._fleet = fleet
        self._tickets = tickets
        self._worker = worker

    def sweep(self) -> None:
        """Sweep once, if it is this worker's turn.

        Raises:
            redis.RedisError: Redis does not answer.
            QueueUnavailable: nor does the broker.
        """
        holder = self._redis.get(keys.SWEEPER)
        if holder not in (None, self._worker.encode()):
            return
        self._redis.set(keys.SWEEPER, self._worker, px=int(SWEEP_S * 3000))
        self._store.sweep()
        slots: Counter[str] = Counter()
        for card in self._fleet.workers():
            slots[card.model] += card.slots
        for model, n_slots in slots.items():
            n_waiting = self._redis.zcard(keys.waiting(model))
            top_up(self._tickets, self._redis, model, n_waiting, n_slots)
