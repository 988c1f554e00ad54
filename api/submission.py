"""Admission: the one way in which a request, of whatever protocol, becomes a job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from api.fleet_view import FleetView
from api.protocols import Protocol
from api.settings import Settings
from workers.contract.errors import InvalidParams, ModelLoading, QueueUnavailable
from workers.contract.job_body import Job
from workers.contract.job_record import JobRecord
from workers.contract.store import JobStore
from workers.contract.text_job import TextJob

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
            needs_worker: whether to refuse when no worker is ready.

        Raises:
            RequestRejected: the request cannot be done as asked.
            ModelLoading: no worker is ready.
            redis.RedisError: the store took nothing.
        """
        job = protocol.load(body, self._settings)
        self._check_fits(job)
        if needs_worker and not self._fleet.ready(job.model):
            raise ModelLoading(f"the model {job.model} is not ready yet")
        record = self._store.create(protocol.name, job, owner)
        try:
            self._send_ticket(job.model)
        except QueueUnavailable as error:
            # The job is safe in its record; the sweeper sends the missing ticket.
            log.warning("no ticket for job %s: %s", record.id, error)
        return record

    def _check_fits(self, job: Job) -> None:
        """Refuse what no worker could ever run; pictures were checked against the settings."""
        if not isinstance(job, TextJob):
            return
        cards = self._fleet.ready(job.model)
        slots = max((card.slots for card in cards), default=self._settings.slots)
        longest = max((card.max_length for card in cards), default=self._settings.max_length)
        if job.n_sequences > slots:
            problem = f"must be at most {slots}, what a worker generates at once"
            raise InvalidParams("sequences_count", problem)
        if longest is not None and job.max_new_tokens >= longest:
            problem = f"must be at most {longest - 1}: {longest} tokens have room, prompt included"
            raise InvalidParams("generated_tokens_count", problem)
