"""`/v1/chat/completions` and `/v1/completions`, and `/v1/models`, all also without `/v1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Response, request
from flask_smorest import Blueprint

from api import synchronous
from api.answer_stream import answer_stream
from api.connection import Connection
from api.documentation import document
from api.jobs.schema import JobSchema, StandardErrorSchema
from api.json_body import read_raw_json
from api.node.elsewhere import answer_elsewhere
from api.preferences import parse_preference
from api.protocols import Protocol, Room
from api.replies import json_reply
from api.services import services
from api.standard.adapter import (
    chat_job,
    completion_jobs,
    load_chat,
    load_completion,
    read_chat,
    read_completion,
    renamed,
    with_model,
)
from api.standard.models import list_models, named_model
from api.standard.renderer import render_chat, render_completion, render_completions
from api.standard.schema import (
    AnswerSchema,
    ChatSchema,
    CompletionSchema,
    ModelSchema,
    ModelsSchema,
)
from api.standard.stream import ChunkWriter, chat_chunks, completion_chunks
from api.standard.vendor_chat import VendorChatWriter, is_vendors
from api.standard_error import render_error
from workers.contract.job_record import JobRecord

CHAT = Protocol(name="chat", load=load_chat, render=render_chat, rename=renamed)
COMPLETION = Protocol(
    name="completion", load=load_completion, render=render_completion, rename=renamed
)

blueprint = Blueprint("standard", __name__, description="The AI model interface standard")

_ANSWERS: Mapping[int, Any] = {200: AnswerSchema, 202: JobSchema}
_ERRORS: Mapping[tuple[int, ...], Any] = {
    (400, 401, 404, 409, 413, 415, 500, 503): StandardErrorSchema
}


@document(
    blueprint,
    "/v1/chat/completions",
    "POST",
    also=("/chat/completions",),
    body=ChatSchema,
    answers=_ANSWERS,
    errors=_ERRORS,
    headers=("Prefer",),
)
def chat() -> Response:
    """Go on with a conversation, as a whole or as a stream of server-sent events.

    A client that leaves cancels its job, unless it sent `Prefer: respond-async` or
    `Prefer: wait=N` (seconds), by which the answer may be a job.
    """
    raw, body = read_raw_json(request)
    if (elsewhere := answer_elsewhere(raw, body.get("model"))) is not None:
        return elsewhere
    if parse_preference(request.headers.get("Prefer")).is_given:
        return synchronous.call(CHAT, body)
    fields = read_chat(with_model(body, services().settings))
    made, records = synchronous.admit(CHAT, [chat_job(fields)])
    if not fields["stream"]:
        return json_reply(render_chat(*synchronous.results_of(made, records)))
    is_theirs = is_vendors(body, request.headers.get("User-Agent", ""))
    chunks = (VendorChatWriter if is_theirs else chat_chunks)(
        records[0],
        n_texts=fields["n"],
        tells_scores=fields["logprobs"],
        repeats_usage=bool(fields["stream_options"]),
    )
    return answer_stream(made, records, chunks, Connection(request.environ))


@document(
    blueprint,
    "/v1/completions",
    "POST",
    also=("/completions",),
    body=CompletionSchema,
    answers=_ANSWERS,
    errors=_ERRORS,
    headers=("Prefer",),
)
def complete() -> Response:
    """Go on with one or several texts, as a whole or as a stream of server-sent events.

    Each prompt is a job of its own. A client that leaves cancels them.
    """
    raw, body = read_raw_json(request)
    if (elsewhere := answer_elsewhere(raw, body.get("model"))) is not None:
        return elsewhere
    if parse_preference(request.headers.get("Prefer")).is_given:
        return synchronous.call(COMPLETION, body)
    fields = read_completion(with_model(body, services().settings))
    made, records = synchronous.admit(COMPLETION, completion_jobs(fields))
    if fields["stream"]:
        return answer_stream(
            made, records, _completion_chunks(records, fields), Connection(request.environ)
        )
    return json_reply(render_completions(synchronous.results_of(made, records)))


@document(
    blueprint,
    "/v1/models",
    "GET",
    also=("/models",),
    answers={200: ModelsSchema},
    errors={(401, 503): StandardErrorSchema},
)
def models() -> Response:
    """List the models that requests can name."""
    made = services()
    body = {"project": made.settings.project, "object": "list", "data": list_models(made)}
    return json_reply(body)


@document(
    blueprint,
    "/v1/models/<path:name>",
    "GET",
    also=("/models/<path:name>",),
    answers={200: ModelSchema},
    errors={(401, 404, 503): StandardErrorSchema},
)
def model(name: str) -> Response:
    """Look at one model."""
    return json_reply(named_model(services(), name))


def _completion_chunks(records: Sequence[JobRecord], fields: Mapping[str, Any]) -> ChunkWriter:
    return completion_chunks(
        records,
        n_texts=fields["n"],
        tells_scores=fields["logprobs"] is not None,
        repeats_usage=bool(fields["stream_options"]),
    )


ROOM = Room(
    blueprint=blueprint, prefixes=("/chat/", "/completions", "/models"), error_body=render_error
)
