"""Writes jobs, and errors under /v1."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response

from api.errors import Problem
from api.protocols import Protocols
from api.replies import json_reply
from workers.contract.job_record import JobRecord
from workers.contract.text_job import TextResult

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def render_job(record: JobRecord, protocols: Protocols) -> dict[str, Any]:
    """A job; its result is exactly what its protocol's own endpoint would answer."""
    result, error = record.result, record.error
    n_generated = record.n_generated
    if isinstance(result, TextResult):
        n_generated = sum(len(each.tokens) for each in result.sequences)
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
        "progress": {done: n_generated, expected: record.n_expected},
        "result": protocols.render(record),
        "error": None if error is None else {"code": error[0], "message": error[1]},
    }
    if result is not None and result.is_partial:
        body["partial"] = True
    return body


def job_reply(
    record: JobRecord,
    protocols: Protocols,
    status: int,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A response that is a job; an accepted one also says where to find it."""
    response = json_reply(render_job(record, protocols), status, headers)
    if status == 202:
        response.headers["Location"] = f"/v1/jobs/{record.id}"
    return response


def render_time(moment_ms: int | None) -> str | None:
    """Milliseconds since the epoch as RFC 3339 has it, in UTC."""
    if moment_ms is None:
        return None
    moment = _EPOCH + timedelta(milliseconds=moment_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def render_error(problem: Problem) -> dict[str, Any]:
    """An error: number and text for everybody, and once more as OpenAI's clients read it."""
    return {
        "code": problem.number,
        "message": problem.message,
        "error": {
            "message": problem.message,
            "type": _error_type(problem.status),
            "code": problem.code,
            "param": problem.param,
        },
    }


def _error_type(status: int) -> str:
    if status == 401:
        return "authentication_error"
    return "server_error" if status >= 500 else "invalid_request_error"
