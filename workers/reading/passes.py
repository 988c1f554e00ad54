"""The passes of one job through the engine: a few at a time, and all of them or none."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeVar

from workers.contract.text_result import TextDelta
from workers.engine.generation import Generation, Sink
from workers.engine.questions import TextToRead

_Found = TypeVar("_Found")

AT_ONCE = 4
"""Passes of one job that the engine has at a time, so that other jobs get rows between them."""


class _Listener:
    """Hears of one pass's end."""

    def __init__(self, place: int, ended: SimpleQueue[tuple[int, Exception | None]]) -> None:
        self._place = place
        self._ended = ended

    def add(self, deltas: Sequence[TextDelta], n_generated: int) -> None:
        """Nothing is made."""

    def end(self, error: Exception | None) -> None:
        self._ended.put((self._place, error))


class Passes:
    """Reads the texts of one job.

    Args:
        prepare: makes of a text what the engine runs.
        submit: gives that to the engine.
        report: hears how many of how many texts are read.
    """

    def __init__(
        self,
        prepare: Callable[[TextToRead, Sink], Generation],
        submit: Callable[[Generation], None],
        report: Callable[[int, int], None],
    ) -> None:
        self._prepare = prepare
        self._submit = submit
        self._report = report
        self._lock = threading.Lock()
        self._running: dict[int, Generation] = {}
        self._is_cancelled = False

    def cancel(self) -> None:
        """End what runs at the engine's next step, and begin nothing more; any thread may."""
        with self._lock:
            self._is_cancelled = True
            for generation in self._running.values():
                generation.cancel()

    def run(
        self, texts: Sequence[TextToRead], find: Callable[[Generation], _Found]
    ) -> list[_Found] | None:
        """Read texts, and wait until all of that has ended.

        Args:
            texts: what to read; each fits in a row.
            find: takes what is wanted from a generation that read a text to its end.

        Returns:
            What was found in each text; None where this was cancelled before the last one's end.

        Raises:
            Exception: that of the first pass that failed, once no other one runs.
        """
        found: dict[int, _Found] = {}
        ended: SimpleQueue[tuple[int, Exception | None]] = SimpleQueue()
        waiting = deque(enumerate(texts))
        failure: Exception | None = None
        self._report(0, len(texts))
        while True:
            while waiting and len(self._running) < AT_ONCE and not self._is_cancelled:
                self._begin(*waiting.popleft(), ended)
            if not self._running:
                break
            place, error = ended.get()
            with self._lock:
                generation = self._running.pop(place)
            if error is not None:
                failure = failure or error
                self.cancel()
            elif not generation.is_partial:
                found[place] = find(generation)
                self._report(len(found), len(texts))
        if failure is not None:
            raise failure
        return [found[n] for n in range(len(texts))] if len(found) == len(texts) else None

    def _begin(
        self, place: int, text: TextToRead, ended: SimpleQueue[tuple[int, Exception | None]]
    ) -> None:
        generation = self._prepare(text, _Listener(place, ended))
        with self._lock:
            self._running[place] = generation
            if self._is_cancelled:
                generation.cancel()
        self._submit(generation)
