"""Joins the generations that do one job in parts, for whoever wants to hear of the whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from workers.contract.text_result import TextDelta
from workers.engine.generation import Generation, Sink


class JoinedSinks:
    """The sinks of the parts, which one sink hears through.

    A part that fails ends the others.

    Args:
        sink: hears of the whole.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._n_generated: list[int] = []
        self._n_open = 0
        self._error: Exception | None = None
        self.generations: list[Generation] = []
        """The parts, once they are made."""

    def open(self) -> Sink:
        """A sink for one more part."""
        self._n_generated.append(0)
        self._n_open += 1
        return _Part(self, len(self._n_generated) - 1)

    def add(self, part: int, deltas: Sequence[TextDelta], n_generated: int) -> None:
        """Hear what a part's sequences gained, and how many tokens they have in all."""
        with self._lock:
            self._n_generated[part] = n_generated
            self._sink.add(deltas, sum(self._n_generated))

    def end(self, error: Exception | None) -> None:
        """Hear that a part has ended."""
        with self._lock:
            self._n_open -= 1
            self._error = self._error or error
            is_last = self._n_open == 0
        if error is not None:
            for generation in self.generations:
                generation.cancel()
        if is_last:
            self._sink.end(self._error)


class _Part:
    def __init__(self, whole: JoinedSinks, number: int) -> None:
        self._whole = whole
        self._number = number

    def add(self, deltas: Sequence[TextDelta], n_generated: int) -> None:
        self._whole.add(self._number, deltas, n_generated)

    def end(self, error: Exception | None) -> None:
        self._whole.end(error)


def cancelling(generations: Sequence[Generation]) -> Callable[[], None]:
    """What asks all parts of a job to end."""

    def cancel() -> None:
        for each in generations:
            each.cancel()

    return cancel
