"""The only place of the benches that drives the engine: load, submit, step, and what they cost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from api.neodim import adapter
from bench.hearing import Ear, Request, Run
from bench.model_choice import ModelChoice
from neodim_sampling.text.codec import TextCodec
from workers.contract.settings import Settings
from workers.contract.text_job import TextJob
from workers.engine.engine import Engine
from workers.engine.results import make_result
from workers.models.serving import make_ready, preparer_of

T = TypeVar("T")
Change = Callable[[TextJob], TextJob]
"""What is done to a job that Neodim's fields have no words for."""

SETTINGS = Settings()
DEFAULT_CHUNK = SETTINGS.prefill_chunk


class OurEngine:
    """An engine with a model of its own, driven step by step in a thread of its own.

    As in the service, the model is warmed up in one thread and runs in another. That matters: each
    has its own OpenMP threads, and libgomp lets threads spin for long only while there are no more
    of them than cores. Driven by the thread that warmed up, a small model's step took four times
    as long on 2 cores.

    Args:
        choice: which model; it is loaded here, as the engine may take its weights apart.
        slots: sequences at once.
        max_length: tokens of a sequence; None = what the service takes.
        chunk: prompt tokens read between two steps.
        is_general: whether the path that all model families share is taken even where the model's
            family has a faster one.

    Raises:
        ModelUnusable: there is no such model, or its context is shorter than `max_length`.
    """

    def __init__(
        self,
        choice: ModelChoice,
        *,
        slots: int,
        max_length: int | None = None,
        chunk: int = DEFAULT_CHUNK,
        is_general: bool = False,
    ) -> None:
        settings = Settings(
            model=choice.source,
            precision=choice.precision,
            layers="0" if choice.device == "cpu" else "a",
            slots=slots,
            max_length=max_length,
        )
        # What it says of each load would get between the tables.
        logging.getLogger("workers.models.loader").setLevel(logging.ERROR)
        loaded, self._model = make_ready(settings, is_general=is_general)
        self.weights_bytes = self._model.weights_bytes
        """Memory that the model's weights need."""
        self.device_type = choice.device
        self.max_length = loaded.max_length
        self.codec = TextCodec(loaded.tokenizer)
        self._preparer = preparer_of(loaded, self.codec, slots)
        self.n_read_tokens = 0
        """Tokens that the model has read, of prompts and generated ones."""
        self._count_reading()
        self._engine = Engine(self._model, chunk, on_death=lambda: None)
        self._thread_id: int | None = None
        self._thread = ThreadPoolExecutor(1, "bench-engine", self._remember_thread)

    @property
    def cache_bytes(self) -> int:
        """Memory of all cache rows when they are full."""
        return self._model.cache.n_bytes

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs or waits."""
        return self._engine.is_idle

    def submit(self, fields: Mapping[str, Any], change: Change | None = None) -> Request:
        """Tokenise a Neodim request, changed or as it is, and hand it to the engine."""
        ear = Ear()
        job = adapter.load(fields, SETTINGS)
        job = job if change is None else change(job)
        request = Request(self._preparer.prepare(job, {}, ear), ear)
        self._engine.submit(request.generation)
        return request

    def do(self, work: Callable[[], T]) -> T:
        """Run something in the engine's thread."""
        if threading.get_ident() == self._thread_id:
            return work()
        return self._thread.submit(work).result()

    def step(self) -> float:
        """One step of the engine; its seconds."""

        def timed() -> float:
            start = time.perf_counter()
            self._engine.step()
            return time.perf_counter() - start

        return self.do(timed)

    def finish(self, requests: Sequence[Request]) -> None:
        """Step until these have ended.

        Raises:
            Exception: what a request failed by.
        """
        self._step_while(lambda: not all(each.ear.is_ended for each in requests))
        for each in requests:
            if each.ear.error is not None:
                raise each.ear.error

    def run(self, requests: Sequence[Mapping[str, Any]], change: Change | None = None) -> Run:
        """All of these, arriving at once, to the end of the last."""
        start = time.perf_counter()
        submitted = [self.submit(fields, change) for fields in requests]
        self.finish(submitted)
        seconds = time.perf_counter() - start
        return Run(seconds, sum(each.n_tokens for each in submitted))

    def start_rows(self, requests: Sequence[Mapping[str, Any]]) -> list[Request]:
        """Submit these and step until each has its second token: from then on all are in step."""
        submitted = [self.submit(fields) for fields in requests]
        self._step_while(lambda: any(each.n_tokens < 2 for each in submitted))
        return submitted

    def abandon(self, requests: Sequence[Request]) -> None:
        """Cancel these, and let the engine see it."""
        for each in requests:
            each.generation.cancel()
        self._step_while(lambda: not all(each.ear.is_ended for each in requests))

    def read_of_prompt(self, fields: Mapping[str, Any]) -> tuple[Request, int]:
        """A request, run alone to its end, and how many tokens of its prompt were read.

        Raises:
            Exception: what the request failed by.
        """
        n_before = self.n_read_tokens
        request = self.submit(fields)
        self.finish([request])
        # Each generated token but the last was read to get the next one.
        return request, self.n_read_tokens - n_before - (request.n_tokens - 1)

    def output_text(self, request: Request) -> str:
        """Prompt and generated text of a request that has ended."""
        return make_result([request.generation], self.codec).sequences[0].output_text

    def stop(self) -> None:
        """Give up what the engine holds."""
        self._engine.stop()
        self._thread.shutdown()

    def _step_while(self, is_wanted: Callable[[], bool]) -> None:
        def steps() -> None:
            while is_wanted():
                self._engine.step()

        self.do(steps)

    def _remember_thread(self) -> None:
        self._thread_id = threading.get_ident()

    def _count_reading(self) -> None:
        """Put a counter in front of the model's `read`."""
        read = self._model.read

        def counting(runs: Sequence[Any]) -> Any:
            self.n_read_tokens += sum(len(run.tokens) for run in runs)
            return read(runs)

        # In front of this one model's method: what the engine reads is seen nowhere else.
        self._model.read = counting  # type: ignore[method-assign]
