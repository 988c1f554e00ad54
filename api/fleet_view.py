"""What this process knows of the workers, asked for at most once a second."""

from __future__ import annotations

import time

from workers.contract.fleet import Fleet, WorkerCard, WorkerKind, WorkerState

MAX_AGE_S = 1.0


class FleetView:
    """The workers, as they were a moment ago.

    Args:
        fleet: where they report.
        max_age_s: for how long an answer is believed.
    """

    def __init__(self, fleet: Fleet, max_age_s: float = MAX_AGE_S) -> None:
        self._fleet = fleet
        self._max_age_s = max_age_s
        self._cards: list[WorkerCard] = []
        self._valid_until = 0.0

    def models(self) -> dict[str, WorkerKind]:
        """The models that workers serve or load, with what they make, by name."""
        return {card.model: card.kind for card in sorted(self._known(), key=lambda c: c.model)}

    def reads_pictures(self) -> bool:
        """Whether there is a worker whose prompts may have pictures.

        Raises:
            redis.RedisError: Redis does not answer.
        """
        return any(card.reads_pictures for card in self._known())

    def workers(self, model: str) -> list[WorkerCard]:
        """Every worker of the model.

        Raises:
            redis.RedisError: Redis does not answer.
        """
        return [card for card in self._known() if card.model == model]

    def _known(self) -> list[WorkerCard]:
        now = time.monotonic()
        if now >= self._valid_until:
            self._cards = self._fleet.workers()
            self._valid_until = now + self._max_age_s
        return self._cards

    def ready(self, model: str) -> list[WorkerCard]:
        """The workers of the model that take jobs now."""
        return [card for card in self.workers(model) if card.state is WorkerState.READY]
