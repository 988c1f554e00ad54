"""What runs in one worker process beside Celery, whatever it makes: claims, heartbeat, sweep, ends.

A kind of worker is a subclass that loads its model and does one job.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Protocol

import msgspec
import redis

from workers.contract import keys
from workers.contract.attempts import Attempt, AttemptStore
from workers.contract.errors import (
    EngineFailure,
    EngineStopped,
    LeaseLost,
    NeodimError,
    QueueUnavailable,
    RequestRejected,
)
from workers.contract.fleet import Fleet, WorkerCard, WorkerKind, WorkerState
from workers.contract.job_body import Job
from workers.contract.redis_client import connect
from workers.contract.settings import Settings
from workers.contract.tickets import make_celery
from workers.publisher import STUCK_S, Output, Publisher
from workers.registration.upkeep import make_upkeep
from workers.sweeper import SWEEP_S, Sweeper

log = logging.getLogger(__name__)

BEAT_S = 2.0

Finish = Callable[[], None]
"""Writes the end of a job."""


class RunningEngine(Protocol):
    """What a host has to know of the engine that does its jobs."""

    @property
    def n_turns(self) -> int:
        """Steps so far."""
        ...

    @property
    def turned_at(self) -> float:
        """When it was last seen to live, by the monotonic clock."""
        ...

    def stop(self) -> None:
        """End what runs with `EngineStopped`, at its next step."""
        ...


class WorkerHost(ABC):
    """One worker: claims jobs, runs them, reports.

    Args:
        settings: of the service.
        name: this worker's name.
        cid: its id at nodes.
        model_name: what it serves.
        slots: what it makes at once.
    """

    kind: ClassVar[WorkerKind]
    stuck_s: ClassVar[float] = STUCK_S
    """A worker whose engine does not turn for so long counts as lost, and ends itself."""

    def __init__(
        self, settings: Settings, name: str, cid: str, *, model_name: str, slots: int
    ) -> None:
        assert settings.redis_url is not None, "the launcher names a Redis"
        self._settings = settings
        self._name = name
        self._cid = cid
        self._model_name = model_name
        self._slots = slots
        self._redis = connect(settings.redis_url)
        self._tickets = make_celery(settings.redis_url)
        self._fleet = Fleet(self._redis)
        self._store = AttemptStore(
            self._redis,
            worker=name,
            lease_s=settings.lease_s,
            result_ttl_s=settings.result_ttl_s,
            max_attempts=settings.max_attempts,
        )
        self._started_ms = int(time.time() * 1000)
        self._sweeper = Sweeper(self._redis, self._store, self._fleet, self._tickets, name)
        self._state = WorkerState.LOADING
        self._max_length = 0
        self._reads_pictures = False
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._every, args=(BEAT_S, self._beat), name="heartbeat"),
            threading.Thread(
                target=self._every, args=(SWEEP_S, self._sweeper.sweep), name="sweeper"
            ),
        ]
        self._engine: RunningEngine | None = None
        self._nodes = make_upkeep(settings, self._redis, worker=name, cid=cid, report=self._report)

    @abstractmethod
    def _load(self) -> tuple[RunningEngine, int]:
        """Load the model and start its engine.

        Returns:
            The engine, and what the worker's card says as `max_length`.

        Raises:
            ModelUnusable: the model cannot be served, ever.
        """

    @abstractmethod
    def _do(self, attempt: Attempt, job: Job, output: Output) -> Finish:
        """Run a job to its end, and say how to write that.

        Args:
            attempt: this worker's go at it.
            job: what was asked for.
            output: takes what is made on the way, and tells of a cancel.

        Raises:
            EngineStopped: the job is to go back to the queue.
            NeodimError: it failed.
        """

    def announce(self) -> None:
        """Say that this worker is loading its model, and that dead ones of this host are gone."""
        for card in self._fleet.workers():
            if card.host == self._card().host and not _is_alive(card.pid):
                self._fleet.leave(card.name)
        self._beat()
        self._threads[0].start()
        self._nodes.start()

    def serve(self) -> None:
        """Load the model and begin to take jobs.

        Raises:
            ModelUnusable: the model cannot be served, ever.
        """
        engine, self._max_length = self._load()
        self._engine = engine
        self._publisher = Publisher(self._store, lambda: engine.turned_at, self.stuck_s)
        self._publisher.start()
        self._state = WorkerState.READY
        self._beat()
        self._tell_of_other_models()
        self._threads[1].start()

    def stop(self) -> None:
        """Hand back what runs and take no more."""
        self._state = WorkerState.DRAINING
        self._stopped.set()
        self._nodes.stop()
        if self._engine is not None:
            self._engine.stop()

    def leave(self) -> None:
        """Stop reporting; the last thing a worker does."""
        if self._engine is not None:
            self._publisher.stop()
        self._nodes.stop()
        self._nodes.join()
        try:
            self._fleet.leave(self._name)
        except redis.RedisError as error:
            log.warning("cannot sign off: %s", error)

    def run_next_job(self) -> None:
        """Claim the best waiting job and run it to its end; returns at once if nothing waits."""
        if self._stopped.is_set():
            return
        attempt = self._store.claim(self._model_name)
        if attempt is not None:
            self._run(attempt)

    def _run(self, attempt: Attempt) -> None:
        output = self._publisher.open(attempt)
        try:
            finish = self._do(attempt, _job_of(attempt), output)
        except EngineStopped:
            finish = self._handing_back(attempt)
        except NeodimError as error:
            finish = self._failure(attempt, error)
        except Exception as error:
            log.exception("job %s failed", attempt.job_id)
            finish = self._failure(attempt, EngineFailure(f"unexpected {type(error).__name__}"))
        try:
            self._publisher.close(output, finish)
        except LeaseLost as error:
            log.warning("%s", error)

    def _handing_back(self, attempt: Attempt) -> Finish:
        return lambda: self._store.hand_back(attempt)

    def _failure(self, attempt: Attempt, error: NeodimError) -> Finish:
        level = logging.INFO if isinstance(error, RequestRejected) else logging.WARNING
        log.log(level, "job %s: %s: %s", attempt.job_id, error.code, error)
        code, message = error.code, str(error)
        return lambda: self._store.fail(attempt, code, message)

    def _every(self, seconds: float, act: Callable[[], None]) -> None:
        while not self._stopped.wait(seconds):
            try:
                act()
            except (redis.RedisError, QueueUnavailable) as error:
                log.warning("%s: %s", act.__name__.strip("_"), error)

    def _beat(self) -> None:
        """Say that this worker lives; one whose engine does not turn any more ends itself."""
        engine = self._engine
        if engine is not None and time.monotonic() - engine.turned_at > self.stuck_s:
            log.critical("the engine has not turned for %d s", self.stuck_s)
            end_process()
        self._report()

    def _report(self) -> None:
        self._fleet.report(self._card())

    def _card(self) -> WorkerCard:
        return WorkerCard(
            name=self._name,
            model=self._model_name,
            state=self._state,
            slots=self._slots,
            max_length=self._max_length,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_ms=self._started_ms,
            step=self._engine.n_turns if self._engine is not None else 0,
            kind=self.kind,
            cid=self._cid,
            reads_pictures=self._reads_pictures,
        )

    def _tell_of_other_models(self) -> None:
        """Say which jobs nobody here will run: left from a start with another model."""
        for key in self._redis.scan_iter(match=f"{keys.WAITING_PREFIX}*"):
            model = key.decode().removeprefix(keys.WAITING_PREFIX)
            if model not in self._settings.model_names:
                count = self._redis.zcard(key)
                log.warning("%d jobs wait for the model %s, not served here", count, model)


def end_process() -> None:
    """End this process at once: it can do no work, its jobs go to the one that replaces it."""
    logging.shutdown()
    os._exit(os.EX_SOFTWARE)


def _job_of(attempt: Attempt) -> Job:
    try:
        return attempt.job()
    except msgspec.ValidationError as error:
        raise EngineFailure(f"the job was written by another version: {error}") from error


def _is_alive(pid: int) -> bool:
    """Whether a process of this host still runs; one of another container may look dead."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
