"""The synchronous call, the same for every protocol: submit, wait, answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import redis
from flask import Response, request

from api import request_id
from api.auth import owner
from api.connection import Connection
from api.jobs.renderer import job_reply
from api.preferences import Preference, parse_preference
from api.protocols import Protocol
from api.rejections import JobCancelled, ServiceStopping
from api.replies import json_reply
from api.services import Services, services
from api.waiting import wait_for_end
from workers.contract.errors import JobFailed, JobNotFound, NeodimError
from workers.contract.job_record import JobRecord, JobState
from workers.contract.text_job import TextJob

log = logging.getLogger(__name__)


def submit(
    protocol: Protocol, body: Mapping[str, Any], *, needs_worker: bool
) -> tuple[Services, JobRecord]:
    """Make the current request's job, by whose id its answer then goes."""
    made = services()
    record = made.submission.submit(protocol, body, owner(), needs_worker=needs_worker)
    request_id.adopt(record.id)
    return made, record


def admit(protocol: Protocol, jobs: Sequence[TextJob]) -> tuple[Services, list[JobRecord]]:
    """Put the current request's jobs in line; its answer goes by the id of the first."""
    made = services()
    records = made.submission.admit(protocol, jobs, owner(), needs_worker=True)
    request_id.adopt(records[0].id)
    return made, records


def results_of(made: Services, records: Sequence[JobRecord]) -> list[JobRecord]:
    """Wait for jobs; a client that leaves cancels them.

    Raises:
        NeodimError: one failed or was cancelled; the others are cancelled then.
        ClientGone: nobody waits any more.
    """
    connection = Connection(request.environ)
    ended: list[JobRecord] = []
    try:
        for record in records:
            ended.append(wait_for_end(made.bell, made.store, record.id, connection))
            raise_failure(ended[-1])
    except ServiceStopping:
        raise
    except NeodimError:
        cancel_all(made, records[len(ended) :])
        raise
    return ended


def cancel_all(made: Services, records: Sequence[JobRecord]) -> None:
    """Cancel jobs whose result nobody wants any more."""
    for record in records:
        log.info("nobody waits for job %s any more, so it is cancelled", record.id)
        try:
            made.store.cancel(record.id)
        except JobNotFound:
            pass
        except redis.RedisError as error:
            log.warning("job %s goes on, it could not be cancelled: %s", record.id, error)


def raise_failure(record: JobRecord) -> None:
    """Make an error of a job that ended without a whole result.

    Raises:
        JobFailed: it failed.
        JobCancelled: it was cancelled.
    """
    if record.error is not None:
        raise JobFailed(*record.error)
    if record.state is JobState.CANCELLED:
        raise JobCancelled(record.id)


def call(protocol: Protocol, body: Mapping[str, Any]) -> Response:
    """Answer a request with its result, or with its job where the client prefers that.

    Args:
        protocol: reads the request and writes the result.
        body: the request's JSON object.

    Raises:
        NeodimError: refused, failed, cancelled, or not possible now.
    """
    preference = parse_preference(request.headers.get("Prefer"))
    made, record = submit(protocol, body, needs_worker=not preference.is_given)
    if not preference.is_given:
        (ended,) = results_of(made, [record])
        return finished(protocol, ended)
    record = wait_as_preferred(made, record, preference)
    if not record.state.is_ended:
        return job_reply(record, made, 202, preference.headers)
    return finished(protocol, record, preference.headers)


def wait_as_preferred(made: Services, record: JobRecord, preference: Preference) -> JobRecord:
    """Wait for as long as the client prefers; a client that leaves cancels nothing.

    Raises:
        ClientGone: nobody waits any more.
    """
    if preference.wait_s is None:
        return record
    connection = Connection(request.environ)
    return wait_for_end(made.bell, made.store, record.id, connection, preference.wait_s)


def finished(
    protocol: Protocol, record: JobRecord, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer that an ended job is.

    Raises:
        JobFailed: it failed.
        JobCancelled: it was cancelled.
    """
    raise_failure(record)
    return json_reply(protocol.render(record), 200, headers)
