"""The publisher: writes what running jobs generate to Redis, and brings back who was cancelled.

The only thread that publishes. One pipelined write per tick for all jobs also renews their leases.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

import redis

from workers.contract.attempts import Attempt, AttemptStore, Progress
from workers.contract.errors import LeaseLost
from workers.contract.text_result import TextDelta, join_deltas

log = logging.getLogger(__name__)

TICK_S = 0.05
SILENCE_S = 0.25
"""Longest time without a write for a running attempt: writes renew leases and tell of cancels."""

RETRY_S = 0.5
STUCK_S = 60.0
"""The usual limit for an engine that does not turn."""


class Output:
    """What one attempt has to say: the sink of its generation, emptied by the publisher."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.error: Exception | None = None
        self.is_lost = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._cancel: Callable[[], None] | None = None
        self._deltas: dict[int, list[TextDelta]] = {}
        self._n_generated = 0
        self._n_expected: int | None = None
        self._batch = 0
        self._unacknowledged: Progress | None = None
        self._due_at = 0.0

    def connect(self, cancel: Callable[[], None]) -> None:
        """Say how to ask the generation to end."""
        self._cancel = cancel

    def add(self, deltas: Sequence[TextDelta], n_generated: int) -> None:
        """Take what the sequences gained in one step."""
        with self._lock:
            for delta in deltas:
                self._deltas.setdefault(delta.sequence, []).append(delta)
            self._n_generated = n_generated

    def report(self, n_done: int, n_expected: int) -> None:
        """Hear how far a job is that makes no text."""
        with self._lock:
            self._n_generated, self._n_expected = n_done, n_expected

    def end(self, error: Exception | None) -> None:
        """Hear that the generation has ended."""
        self.error = error
        self._ended.set()

    def wait(self) -> None:
        """Wait until the generation has ended."""
        self._ended.wait()

    def cancel(self) -> None:
        """Ask the generation to end at its next step."""
        if self._cancel is not None:
            self._cancel()

    def lose(self) -> None:
        """Hear that another attempt owns the job now."""
        self.is_lost = True
        self.cancel()

    def take(self) -> Progress:
        """What came since the last acknowledged time, one delta a sequence.

        Until `acknowledge` it is the same again, under the same number, so that a write whose
        answer was lost is not made twice.
        """
        with self._lock:
            if self._unacknowledged is None:
                self._unacknowledged = self._collect()
            return self._unacknowledged

    @property
    def has_news(self) -> bool:
        """Whether there is something that was not taken yet."""
        with self._lock:
            return bool(self._deltas)

    @property
    def is_due(self) -> bool:
        """Whether it should be written now."""
        with self._lock:
            is_new = bool(self._deltas) or self._unacknowledged is not None
            return is_new or time.monotonic() >= self._due_at

    def acknowledge(self) -> None:
        """Hear that what `take` gave was written."""
        with self._lock:
            self._unacknowledged = None
            self._due_at = time.monotonic() + SILENCE_S

    def _collect(self) -> Progress:
        deltas = tuple(join_deltas(index, parts) for index, parts in self._deltas.items())
        self._deltas.clear()
        self._batch += 1
        return Progress(
            attempt=self.attempt,
            batch=self._batch,
            n_generated=self._n_generated,
            deltas=deltas,
            n_expected=self._n_expected,
        )


class Publisher:
    """Publishes the outputs of all running attempts.

    Args:
        store: where to.
        engine_turned_at: when the engine was last seen to live, by the monotonic clock.
        stuck_s: an engine that did not turn for so long counts as lost: its leases are let go.
    """

    def __init__(
        self,
        store: AttemptStore,
        engine_turned_at: Callable[[], float],
        stuck_s: float = STUCK_S,
    ) -> None:
        self._store = store
        self._stuck_s = stuck_s
        self._engine_turned_at = engine_turned_at
        self._outputs: set[Output] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        """Begin to publish, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Publish no more."""
        self._stopped.set()
        self._thread.join()

    def open(self, attempt: Attempt) -> Output:
        """The output of a new attempt; its lease is renewed from now on."""
        output = Output(attempt)
        with self._lock:
            self._outputs.add(output)
        return output

    def close(self, output: Output, finish: Callable[[], None]) -> None:
        """Publish the rest of an output, then finish its job; tried until Redis takes it.

        Args:
            output: whose generation has ended.
            finish: writes the job's end.

        Raises:
            LeaseLost: another attempt owns the job; nothing was written.
        """
        with self._lock:
            self._outputs.discard(output)
        while True:
            try:
                self._publish([output])
                # A batch whose answer was lost goes first; what came after it is still to go.
                while output.has_news and not output.is_lost:
                    self._publish([output])
                if output.is_lost:
                    raise LeaseLost(f"job {output.attempt.job_id} is another attempt's now")
                finish()
                return
            except redis.RedisError as error:
                log.warning("job %s: cannot be finished yet: %s", output.attempt.job_id, error)
                time.sleep(RETRY_S)

    def _run(self) -> None:
        while not self._stopped.wait(TICK_S):
            if time.monotonic() - self._engine_turned_at() > self._stuck_s:
                continue
            with self._lock:
                try:
                    self._publish([each for each in self._outputs if each.is_due])
                except redis.RedisError as error:
                    log.warning("cannot publish, trying again: %s", error)
                    self._stopped.wait(RETRY_S)

    def _publish(self, outputs: list[Output]) -> None:
        """Write everything new; what cannot be written is taken again the next time."""
        if not outputs:
            return
        replies = self._store.publish([output.take() for output in outputs])
        for output, reply in zip(outputs, replies, strict=True):
            output.acknowledge()
            if reply == "lost":
                output.lose()
            elif reply:
                output.cancel()
