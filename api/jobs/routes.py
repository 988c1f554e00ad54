"""`/v1/jobs`: submit, look at, cancel and follow jobs of every protocol."""

from __future__ import annotations

from flask import Response, request
from flask_smorest import Blueprint

from api import synchronous
from api.auth import owner
from api.connection import Connection
from api.documentation import document
from api.jobs.events import EventStream, parse_event_id
from api.jobs.renderer import job_reply
from api.jobs.schema import JobSchema, StandardErrorSchema, SubmissionSchema
from api.json_body import read_json
from api.preferences import parse_preference
from api.protocols import Room
from api.request_schema import load
from api.services import services
from api.standard_error import render_error

blueprint = Blueprint("jobs", __name__, description="Jobs of every protocol")

_SUBMISSION = SubmissionSchema()


@document(
    blueprint,
    "/v1/jobs",
    "POST",
    body=SubmissionSchema,
    answers={200: JobSchema, 202: JobSchema},
    errors={(400, 401, 413, 415, 503): StandardErrorSchema},
    headers=("Prefer",),
)
def submit_job() -> Response:
    """Submit a request without waiting for its result.

    With `Prefer: wait=N` the answer waits up to N seconds for the job's end, and is 200 then.
    """
    fields = load(_SUBMISSION, read_json(request))
    protocol = services().protocols.named(fields["protocol"])
    preference = parse_preference(request.headers.get("Prefer"))
    made, record = synchronous.submit(protocol, fields["request"], needs_worker=False)
    record = synchronous.wait_as_preferred(made, record, preference)
    status = 200 if record.state.is_ended else 202
    return job_reply(record, made, status, preference.headers)


@document(
    blueprint,
    "/v1/jobs/<job_id>",
    "GET",
    answers={200: JobSchema},
    errors={(401, 404, 503): StandardErrorSchema},
)
def get_job(job_id: str) -> Response:
    """Look at a job; its result is there once it has ended."""
    made = services()
    return job_reply(made.own_job(job_id, owner()), made, 200)


@document(
    blueprint,
    "/v1/jobs/<job_id>",
    "DELETE",
    answers={200: JobSchema},
    errors={(401, 404, 503): StandardErrorSchema},
)
def cancel_job(job_id: str) -> Response:
    """Cancel a job, keeping what was made so far; a job that has ended stays as it is.

    A running job ends at its worker's next step, so the answer may still show it running.
    """
    made = services()
    made.own_job(job_id, owner())
    return job_reply(made.store.cancel(job_id), made, 200)


@document(
    blueprint,
    "/v1/jobs/<job_id>/events",
    "GET",
    answers={200: "text/event-stream"},
    errors={(400, 401, 404, 503): StandardErrorSchema},
    headers=("Last-Event-ID",),
    query=("starting_after",),
)
def follow_job(job_id: str) -> Response:
    """Follow a job's events to its end, or those after one that is known already.

    `state` has the new state, `delta` the text that a sequence gained; the last event is
    `succeeded`, `failed` or `cancelled` and has the job. `Last-Event-ID` wins over
    `starting_after`, which stays in the address when a reader comes back.
    """
    made = services()
    made.own_job(job_id, owner())
    last_seen = request.headers.get("Last-Event-ID")
    if last_seen:
        after = parse_event_id("Last-Event-ID", last_seen)
    else:
        after = parse_event_id("starting_after", request.args.get("starting_after"))
    stream = EventStream(made, job_id, Connection(request.environ))
    return Response(
        stream.frames(after) if request.method != "HEAD" else None,
        content_type="text/event-stream; charset=utf-8",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


ROOM = Room(blueprint=blueprint, prefixes=("/v1/",), error_body=render_error)
