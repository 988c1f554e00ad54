"""Writes jobs, and errors under /v1."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response

from api.protocols import Protocols
from api.replies import json_reply
from api.services import Services
from workers.contract.job_record import JobRecord
from workers.contract.text_result import TextResult

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def render_job(record: JobRecord, protocols: Protocols, *, is_possible: bool) -> dict[str, Any]:
    """A job; its result is exactly what its protocol's own endpoint would answer.

    Args:
        record: the job.
        protocols: write its result.
        is_possible: whether a worker serves its model now.
    """
    result, error = record.result, record.error
    n_generated = result.n_made if isinstance(result, TextResult) else record.n_generated
    done, expected = protocols.progress_names(record)
    body: dict[str, Any] = {
        "id": record.id,
        "protocol": record.protocol,
        "model": record.model,
        "state": record.state.value,
        "created_at": render_time(record.created_ms),
        "started_at": render_time(record.started_ms),
        "finished_at": render_time(record.finished_ms),
        "attempt": record.attempt,
        "worker": record.worker,
        "is_possible": is_possible,
        "progress": {done: n_generated, expected: record.n_expected},
        "result": protocols.render(record),
        "error": None if error is None else {"code": error[0], "message": error[1]},
    }
    if result is not None and result.is_partial:
        body["partial"] = True
    return body


def job_body(record: JobRecord, made: Services) -> dict[str, Any]:
    """A job as this service sees it now."""
    is_possible = bool(made.fleet.ready(record.model))
    return render_job(record, made.protocols, is_possible=is_possible)


def job_reply(
    record: JobRecord,
    made: Services,
    status: int,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A response that is a job; an accepted one also says where to find it."""
    response = json_reply(job_body(record, made), status, headers)
    if status == 202:
        response.headers["Location"] = f"/v1/jobs/{record.id}"
    return response


def render_time(moment_ms: int | None) -> str | None:
    """Milliseconds since the epoch as RFC 3339 has it, in UTC."""
    if moment_ms is None:
        return None
    moment = _EPOCH + timedelta(milliseconds=moment_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
