"""The synchronous call, the same for every protocol: submit, wait, answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from flask import Response, request

from api import request_id
from api.auth import owner
from api.connection import Connection
from api.jobs.renderer import job_reply
from api.preferences import Preference, parse_preference
from api.protocols import Protocol
from api.rejections import ClientGone, JobCancelled
from api.replies import json_reply
from api.services import Services, services
from api.waiting import wait_for_end
from workers.contract.errors import JobFailed
from workers.contract.job_record import JobRecord, JobState

log = logging.getLogger(__name__)


def submit(
    protocol: Protocol, body: Mapping[str, Any], *, needs_worker: bool
) -> tuple[Services, JobRecord]:
    """Make the current request's job, by whose id its answer then goes."""
    made = services()
    record = made.submission.submit(protocol, body, owner(), needs_worker=needs_worker)
    request_id.adopt(record.id)
    return made, record


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
        return finished(protocol, _wait_or_cancel(made, record))
    record = wait_as_preferred(made, record, preference)
    if not record.state.is_ended:
        return job_reply(record, made.protocols, 202, preference.headers)
    return finished(protocol, record, preference.headers)


def wait_as_preferred(made: Services, record: JobRecord, preference: Preference) -> JobRecord:
    """Wait for as long as the client prefers; a client that leaves cancels nothing.

    Raises:
        ClientGone: nobody waits any more.
    """
    if preference.wait_s is None:
        return record
    connection = Connection(request.environ)
    return wait_for_end(made.store, record.id, connection, preference.wait_s)


def finished(
    protocol: Protocol, record: JobRecord, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer that an ended job is.

    Raises:
        JobFailed: it failed.
        JobCancelled: it was cancelled.
    """
    if record.error is not None:
        raise JobFailed(*record.error)
    if record.state is JobState.CANCELLED:
        raise JobCancelled(record.id)
    return json_reply(protocol.render(record), 200, headers)


def _wait_or_cancel(made: Services, record: JobRecord) -> JobRecord:
    try:
        return wait_for_end(made.store, record.id, Connection(request.environ))
    except ClientGone:
        log.info("the client of job %s left, so it is cancelled", record.id)
        made.store.cancel(record.id)
        raise
