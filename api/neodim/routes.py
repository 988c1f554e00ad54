"""`POST /generate`."""

from __future__ import annotations

from flask import Response, request
from flask_smorest import Blueprint

from api import synchronous
from api.documentation import document
from api.jobs.schema import JobSchema
from api.json_body import read_json
from api.neodim.adapter import load
from api.neodim.renderer import render, render_error
from api.neodim.schema import GeneratedSchema, GenerateSchema, NeodimErrorSchema
from api.protocols import Protocol, Room

NEODIM = Protocol(name="neodim", load=load, render=render)

blueprint = Blueprint("neodim", __name__, description="The Neodim protocol")


@document(
    blueprint,
    "/generate",
    "POST",
    body=GenerateSchema,
    answers={200: GeneratedSchema, 202: JobSchema},
    errors={(400, 401, 409, 413, 500, 503): NeodimErrorSchema},
    headers=("Prefer",),
)
def generate() -> Response:
    """Generate text and wait for it.

    A client that leaves cancels its job, unless it sent `Prefer: respond-async` or
    `Prefer: wait=N` (seconds), by which the answer may be a job.
    """
    # The original never looked at the Content-Type, and plain curl sends that of a form.
    return synchronous.call(NEODIM, read_json(request, needs_media_type=False))


ROOM = Room(blueprint=blueprint, prefixes=("/generate",), error_body=render_error)
