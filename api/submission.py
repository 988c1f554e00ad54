"""Admission: the one way in which a request, of whatever protocol, becomes a job."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from api import stopping
from api.fleet_view import FleetView
from api.protocols import Protocol
from api.settings import Settings
from workers.contract.errors import (
    InvalidParams,
    MissingCapability,
    ModelLoading,
    QueueUnavailable,
    UnknownModel,
)
from workers.contract.fleet import WorkerKind
from workers.contract.image_job import ImageJob
from workers.contract.job_body import Job, has_pictures
from workers.contract.job_record import JobRecord
from workers.contract.registrations import CALLS
from workers.contract.store import JobStore
from workers.contract.text_job import TextJob

POLL_S = 0.25

log = logging.getLogger(__name__)


class Submission:
    """Makes jobs.

    Args:
        store: takes their records.
        fleet: tells what workers can do.
        send_ticket: wakes a worker of a model; raises `QueueUnavailable`.
        settings: the service's settings.
    """

    def __init__(
        self,
        store: JobStore,
        fleet: FleetView,
        send_ticket: Callable[[str], None],
        settings: Settings,
    ) -> None:
        self._store = store
        self._fleet = fleet
        self._send_ticket = send_ticket
        self._settings = settings

    def submit(
        self, protocol: Protocol, body: Mapping[str, Any], owner: str, *, needs_worker: bool
    ) -> JobRecord:
        """Make a job of a request.

        Args:
            protocol: reads the request.
            body: the request's JSON object.
            owner: fingerprint of the API key, "" = none.
            needs_worker: whether to refuse when no worker gets ready.

        Raises:
            RequestRejected: the request cannot be done as asked.
            ModelLoading: no worker is ready.
            redis.RedisError: the store took nothing.
        """
        job = protocol.load(body, self._settings)
        return self.admit(protocol, [job], owner, needs_worker=needs_worker)[0]

    def admit(
        self, protocol: Protocol, jobs: Sequence[Job], owner: str, *, needs_worker: bool
    ) -> list[JobRecord]:
        """Put jobs in line, once all of them are found to be possible.

        Args:
            protocol: which asked for them.
            jobs: at least one.
            owner: fingerprint of the API key, "" = none.
            needs_worker: whether to refuse when no worker gets ready.

        Raises:
            RequestRejected: one cannot be done as asked.
            ModelLoading: no worker is ready.
            redis.RedisError: the store failed; the jobs before that are in line.
        """
        for job in jobs:
            self.check_model(job.model, is_text=not isinstance(job, ImageJob))
            try:
                self._check_fits(job)
            except InvalidParams as error:
                raise protocol.rename(error) from None
        if needs_worker:
            self._await_worker(jobs[0].model)
        return [self._create(protocol, job, owner) for job in jobs]

    def _create(self, protocol: Protocol, job: Job, owner: str) -> JobRecord:
        record = self._store.create(protocol.name, job, owner)
        try:
            self._send_ticket(job.model)
        except QueueUnavailable as error:
            # The job is safe in its record; the sweeper sends the missing ticket.
            log.warning("no ticket for job %s: %s", record.id, error)
        return record

    def _await_worker(self, model: str) -> None:
        """Give a worker that starts again the time that it is given."""
        deadline = time.monotonic() + self._settings.model_wait_s
        while not self.is_ready(model):
            if time.monotonic() >= deadline or stopping.is_begun():
                raise ModelLoading(f"the model {model} is not ready yet")
            time.sleep(POLL_S)

    def models(self) -> dict[str, WorkerKind]:
        """The models that settings and workers name, and what they make; the settings' first."""
        own = {self._settings.model_name: WorkerKind.TEXT}
        if self._settings.image_model_name is not None:
            own[self._settings.image_model_name] = WorkerKind.IMAGE
        return {**own, **self._fleet.models(), **own}

    def is_ready(self, model: str) -> bool:
        """Whether a worker of the model takes jobs now."""
        return bool(self._fleet.ready(model))

    def check_model(self, model: str, *, is_text: bool = True) -> None:
        """Refuse a model that is not for requests of this kind.

        Args:
            model: its name.
            is_text: whether it has to be for text, rather than for pictures.

        Raises:
            UnknownModel: there is none of that name, or it is for other requests.
        """
        models = self.models()
        names = [name for name in models if (models[name] is WorkerKind.TEXT) == is_text]
        if model in names:
            return
        known = f"known: {', '.join(names) or 'none'}"
        if model in models:
            path = CALLS[models[model]][1]
            raise UnknownModel(f"{model!r} is for {path}; for such requests as this, {known}")
        raise UnknownModel(f"{model[:100]!r} is not served here; {known}")

    def _check_fits(self, job: Job) -> None:
        """Refuse what no worker could ever run; pictures to draw were checked by the settings."""
        cards = self._fleet.ready(job.model)
        if has_pictures(job) and cards and not any(card.reads_pictures for card in cards):
            raise MissingCapability(f"prompt: the model {job.model} does not read pictures")
        if not isinstance(job, TextJob):
            return
        slots = max((card.slots for card in cards), default=self._settings.slots)
        longest = max((card.max_length for card in cards), default=self._settings.max_length)
        if job.n_sequences > slots and not job.has_independent_sequences:
            problem = f"must be at most {slots}, what a worker generates at once"
            raise InvalidParams("sequences_count", problem)
        n_new = job.max_new_tokens or 0
        if longest is not None and n_new >= longest:
            problem = f"must be at most {longest - 1}: {longest} tokens have room, prompt included"
            raise InvalidParams("generated_tokens_count", problem)
