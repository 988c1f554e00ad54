"""`/v1/images`: pictures from prompts, changed pictures, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, request
from flask_smorest import Blueprint

from api import synchronous
from api.auth import owner
from api.documentation import document
from api.images.form import MEDIA_TYPE, read_raw_form
from api.images.protocols import EDIT, GENERATION
from api.images.schema import ImageEditSchema, ImageGenerationSchema, ImagesSchema
from api.jobs.schema import JobSchema, StandardErrorSchema
from api.json_body import read_raw_json
from api.node.elsewhere import answer_elsewhere
from api.protocols import Room
from api.rejections import PictureNotFound
from api.services import services
from api.standard_error import render_error

blueprint = Blueprint("images", __name__, description="Pictures")

_REFUSED = (400, 401, 404, 409, 413, 415, 500, 503)
_EDIT_FORM = ImageEditSchema()


@document(
    blueprint,
    "/v1/images/generations",
    "POST",
    body=ImageGenerationSchema,
    answers={200: ImagesSchema, 202: JobSchema},
    errors={_REFUSED: StandardErrorSchema},
    headers=("Prefer",),
)
def generate_images() -> Response:
    """Draw pictures of a prompt, or change one, and wait for them.

    A client that leaves cancels its job, unless it sent `Prefer: respond-async` or
    `Prefer: wait=N` (seconds), by which the answer may be a job.
    """
    _allow_pictures()
    return _answer(GENERATION, *read_raw_json(request))


@document(
    blueprint,
    "/v1/images/edits",
    "POST",
    body=ImageEditSchema,
    body_type=MEDIA_TYPE,
    answers={200: ImagesSchema, 202: JobSchema},
    errors={_REFUSED: StandardErrorSchema},
    headers=("Prefer",),
)
def edit_image() -> Response:
    """Change a picture, or the part of it that a mask leaves transparent, and wait for that.

    The body is a form with files. A client that leaves cancels its job, as with generations.
    """
    _allow_pictures()
    return _answer(EDIT, *read_raw_form(request, _EDIT_FORM))


@document(
    blueprint,
    "/v1/images/<job_id>/<int:n>.png",
    "GET",
    answers={200: "image/png"},
    errors={(401, 404, 503): StandardErrorSchema},
)
def get_picture(job_id: str, n: int) -> Response:
    """Fetch a picture that a job has drawn, for as long as the job is kept."""
    made = services()
    made.own_job(job_id, owner())
    file = made.pictures.get(job_id, n)
    if file is None:
        raise PictureNotFound(f"job {job_id} has no picture {n}")
    return Response(file, mimetype="image/png", headers={"Cache-Control": "private"})


def _answer(protocol: str, raw: bytes, body: Mapping[str, Any]) -> Response:
    """The answer to a request, from wherever its model is served."""
    if (elsewhere := answer_elsewhere(raw, body.get("model"))) is not None:
        return elsewhere
    return synchronous.call(services().protocols.named(protocol), body)


def _allow_pictures() -> None:
    """Let this request's body be as long as one with pictures may be."""
    request.max_content_length = services().settings.image_body_limit_bytes


ROOM = Room(blueprint=blueprint, prefixes=("/v1/images/",), error_body=render_error)
