"""`POST /complete`, also under `/v1`."""

from __future__ import annotations

from flask import Response, request
from flask_smorest import Blueprint

from api import synchronous
from api.aleph_alpha.adapter import completion_job, load_completion, read_completion, renamed
from api.aleph_alpha.errors import AlephAlphaErrorSchema, error_status, render_error
from api.aleph_alpha.paths import NOT_OFFERED, with_version
from api.aleph_alpha.prompt_body import read_prompt_body
from api.aleph_alpha.renderer import render_completion
from api.aleph_alpha.schema import AlephAlphaAnswerSchema, AlephAlphaCompletionSchema
from api.aleph_alpha.stream import CompletionWriter
from api.answer_stream import answer_stream
from api.connection import Connection
from api.documentation import document
from api.jobs.schema import JobSchema
from api.preferences import parse_preference
from api.protocols import Protocol, Room
from api.replies import json_reply

COMPLETION = Protocol(
    name="aleph_alpha", load=load_completion, render=render_completion, rename=renamed
)

blueprint = Blueprint("aleph_alpha", __name__, description="The Aleph Alpha completion API")

PATH, VERSIONED_PATH = with_version("/complete")


@document(
    blueprint,
    PATH,
    "POST",
    also=(VERSIONED_PATH,),
    body=AlephAlphaCompletionSchema,
    answers={200: AlephAlphaAnswerSchema, 202: JobSchema},
    errors={(400, 401, 404, 409, 500, 503): AlephAlphaErrorSchema},
    headers=("Prefer",),
    query=("nice",),
)
def complete() -> Response:
    """Go on with a prompt, as a whole or as a stream of server-sent events.

    A client that leaves cancels its job, unless it sent `Prefer: respond-async` or
    `Prefer: wait=N` (seconds), by which the answer may be a job.
    """
    body = read_prompt_body()
    if parse_preference(request.headers.get("Prefer")).is_given:
        return synchronous.call(COMPLETION, body)
    fields = read_completion(body)
    job = completion_job(fields)
    made, records = synchronous.admit(COMPLETION, [job])
    if fields["stream"]:
        return answer_stream(made, records, CompletionWriter(job), Connection(request.environ))
    return json_reply(render_completion(*synchronous.results_of(made, records)))


ROOM = Room(
    blueprint=blueprint,
    error_body=render_error,
    error_status=error_status,
    paths=(
        *with_version("/complete"),
        *(each for path in NOT_OFFERED for each in with_version(path)),
        # Under /v1 this path is one of OpenAI's.
        "/embeddings",
    ),
)
