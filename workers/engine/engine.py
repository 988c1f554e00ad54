"""The engine: one thread that owns the model and runs many generations at once.

`step` reads as: let go of what was cancelled, admit, read, choose, settle.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import TypeVar

import torch

from neodim_sampling.errors import NoTokenLeft
from neodim_sampling.parameters import StopKind
from workers.contract.errors import EngineStopped
from workers.engine.choosing import next_tokens
from workers.engine.failures import as_neodim_error, no_token_error
from workers.engine.generation import Generation
from workers.engine.pace import Pace
from workers.engine.prefill import Prefill
from workers.engine.reading import NewestTokens, PromptReading, read
from workers.engine.sequence import Sequence
from workers.engine.slot_pool import SlotPool
from workers.engine.text_model import TextModel

_Part = TypeVar("_Part")

log = logging.getLogger(__name__)

PATTERN_WAIT_S = 0.003
"""How long a step waits for regular expressions; slower ones make only their own job wait."""

IDLE_WAIT_S = 0.5
"""Longest sleep of the idle loop, so that it can be seen to live."""


class Engine:
    """Continuous batching over a model's cache rows.

    Args:
        model: the model and its cache.
        prefill_chunk: prompt tokens read between two steps.
        on_death: called when the loop ends with an error that it cannot lay at any request's
            door; nothing runs after that.
    """

    def __init__(self, model: TextModel, prefill_chunk: int, on_death: Callable[[], None]) -> None:
        self._model = model
        self._on_death = on_death
        self._slots = SlotPool(model.cache, model.slots)
        self._prefill = Prefill(model, self._slots)
        self._pace = Pace(prefill_chunk)
        self._arrived: deque[Generation] = deque()
        self._waiting: deque[Generation] = deque()
        self._running: list[Generation] = []
        self._parked: dict[Generation, Future[None]] = {}
        self._patterns = ThreadPoolExecutor(model.slots, thread_name_prefix="patterns")
        self._wake = threading.Condition()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self.n_turns = 0
        self.turned_at = time.monotonic()

    def start(self) -> None:
        """Begin to run, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End the loop after the current step; whatever runs ends with `EngineStopped`."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()
        self._patterns.shutdown(wait=False)

    def submit(self, generation: Generation) -> None:
        """Take a generation; its sink hears of everything else. Any thread may call this."""
        with self._wake:
            if not self._is_stopping:
                self._arrived.append(generation)
                self._wake.notify()
                return
        generation.end(EngineStopped("the worker is stopping"))

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not (self._arrived or self._waiting or self._running)

    def _run(self) -> None:
        try:
            self._turn()
        except Exception:
            log.critical("the engine's loop ended with an error", exc_info=True)
            self._on_death()
        for generation in [*self._running, *self._waiting, *self._arrived]:
            generation.end(EngineStopped("the worker is stopping"))

    def _turn(self) -> None:
        while True:
            with self._wake:
                if self._is_stopping:
                    return
                if self.is_idle:
                    self._wake.wait(IDLE_WAIT_S)
            self.turned_at = time.monotonic()
            self.n_turns += 1
            self.step()

    @torch.inference_mode()
    def step(self) -> None:
        """Give every running generation that can have one its next tokens."""
        with self._wake:
            self._waiting.extend(self._arrived)
            self._arrived.clear()
        self._let_go()
        self._admit()
        started = time.monotonic()
        running = [each for each in self._running if self._is_ready(each)]
        prompts = self._prefill.next_readings(self._pace.prompt_budget(len(running)))
        self._read([each for each in running if not each.is_contrastive], prompts)
        ready = [each for each in self._running if self._is_ready(each)]
        for generation in [each for each in ready if each.is_finished]:
            # It was read for its prompt's sake, and wants no token.
            ready.remove(generation)
            self._settle(generation)
        self._choose([each for each in ready if not each.is_contrastive])
        for generation in ready:
            if generation.is_contrastive:
                self._choose([generation])
        n_prompt_tokens = sum(each.chunk for each in prompts)
        self._pace.observe(len(running), n_prompt_tokens, time.monotonic() - started)
        self._await_patterns()

    def _is_ready(self, generation: Generation) -> bool:
        return generation not in self._parked and not self._prefill.is_waiting(generation)

    def _let_go(self) -> None:
        """End what was cancelled, running or not."""
        for generation in [each for each in self._waiting if each.is_cancelled]:
            self._waiting.remove(generation)
            generation.end()
        for generation in [each for each in self._running if each.is_cancelled]:
            if generation not in self._parked:
                self._retire(generation)

    def _admit(self) -> None:
        """Start waiting generations in order of arrival, as far as there are slots."""
        while self._waiting:
            generation = self._waiting[0]
            if not generation.is_finished and len(generation.to_read) > self._slots.n_free:
                return
            self._waiting.popleft()
            if generation.is_finished:
                generation.end()
                continue
            self._running.append(generation)
            with self._failing_alone(generation):
                self._prefill.add(generation)

    def _read(self, running: list[Generation], prompts: list[PromptReading]) -> None:
        """Read the newest tokens, and parts of prompts, so that what may come next is known."""
        newest = [NewestTokens(each) for each in running]
        self._in_halves([*newest, *prompts], partial(read, self._model), attrgetter("generation"))
        for reading in prompts:
            with self._failing_alone(reading.generation):
                self._prefill.settle(reading)

    def _choose(self, generations: list[Generation]) -> None:
        """One token for every growing sequence of these generations."""
        tokens: dict[Sequence, int | None] = {}

        def choose_together(part: SequenceOf[Generation]) -> None:
            growing = [each for generation in part for each in generation.growing]
            tokens.update(next_tokens(self._model, growing))

        self._in_halves(generations, choose_together, lambda each: each)
        for generation in generations:
            chosen = {each: tokens[each] for each in generation.growing if each in tokens}
            if chosen:
                self._give(generation, chosen)

    def _in_halves(
        self,
        parts: SequenceOf[_Part],
        act: Callable[[SequenceOf[_Part]], None],
        whose: Callable[[_Part], Generation],
    ) -> None:
        """Do something with parts of a step together.

        When that fails, the halves are tried apart, so that only what cannot be done alone fails,
        and a batch too large for the memory shrinks.
        """
        # One that failed in its first half is not tried in the second.
        parts = [each for each in parts if whose(each) in self._running]
        if not parts:
            return
        try:
            act(parts)
        except Exception as error:  # noqa: BLE001 - the engine's loop is such a boundary
            if len(parts) == 1:
                self._retire(whose(parts[0]), error)
                return
            middle = len(parts) // 2
            self._in_halves(parts[:middle], act, whose)
            self._in_halves(parts[middle:], act, whose)

    def _give(self, generation: Generation, tokens: Mapping[Sequence, int | None]) -> None:
        """Let a generation take its tokens; slow text patterns do that beside the loop."""
        taken = {each.row.sequence: token for each, token in tokens.items() if token is not None}
        for stuck in [each for each, token in tokens.items() if token is None]:
            error = no_token_error(stuck)
            if not (isinstance(error, NoTokenLeft) and stuck.may_end_where_stuck):
                self._retire(generation, error)
                return
            stuck.end_where_stuck()
        if not generation.is_contrastive:
            for sequence in tokens:
                sequence.scores = None
        stops = generation.job.stops
        if stops is not None and stops.kind is StopKind.REGEX:
            self._parked[generation] = self._patterns.submit(generation.accept, taken)
            return
        with self._failing_alone(generation):
            generation.accept(taken)
            self._settle(generation)

    def _await_patterns(self) -> None:
        """Go on with the generations whose patterns have been tried."""
        if not self._parked:
            return
        wait(self._parked.values(), timeout=PATTERN_WAIT_S)
        for generation, future in list(self._parked.items()):
            if not future.done():
                continue
            del self._parked[generation]
            with self._failing_alone(generation):
                future.result()
                self._settle(generation)

    def _settle(self, generation: Generation) -> None:
        """Publish what a step gave, free what ended, and retire a finished generation."""
        if generation.is_finished:
            self._retire(generation)
            return
        for sequence in generation.sequences:
            if sequence.has_ended:
                self._slots.take_back(sequence)
        generation.publish(is_last=False)

    @contextmanager
    def _failing_alone(self, generation: Generation) -> Iterator[None]:
        """Let what goes wrong with one generation end that one; the loop outlives it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the engine's loop is such a boundary
            self._retire(generation, error)

    def _retire(self, generation: Generation, error: Exception | None = None) -> None:
        """End a generation and free its slots; once more does no harm."""
        self._running = [each for each in self._running if each is not generation]
        self._prefill.remove(generation)
        for sequence in generation.sequences:
            self._slots.take_back(sequence, is_sound=error is None)
        generation.end(None if error is None else as_neodim_error(error))
