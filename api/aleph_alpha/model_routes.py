"""`/version`, `/models_available` and the models' tokenizers, with and without `/v1`."""

from __future__ import annotations

from flask import Response
from flask_smorest import Blueprint

from api.aleph_alpha.errors import AlephAlphaErrorSchema, error_status, render_error
from api.aleph_alpha.models import API_VERSION, AvailableModelSchema, available_models
from api.aleph_alpha.paths import with_version
from api.documentation import JSON, document
from api.protocols import Room
from api.replies import json_reply
from api.services import services

blueprint = Blueprint("aleph_alpha_models", __name__, description="Models, for Aleph Alpha clients")


@document(
    blueprint,
    "/version",
    "GET",
    also=("/v1/version",),
    answers={200: "text/plain"},
    errors={(401,): AlephAlphaErrorSchema},
)
def version() -> Response:
    """Which version of Aleph Alpha's interface is spoken."""
    return Response(API_VERSION, content_type="text/plain; charset=utf-8")


@document(
    blueprint,
    "/models_available",
    "GET",
    also=("/v1/models_available",),
    answers={200: AvailableModelSchema(many=True)},
    errors={(401, 503): AlephAlphaErrorSchema},
)
def models_available() -> Response:
    """List the text models, as soon as it is known how much they can read."""
    return json_reply(available_models(services()))


@document(
    blueprint,
    "/models/<path:name>/tokenizer",
    "GET",
    also=("/v1/models/<path:name>/tokenizer",),
    answers={200: JSON},
    errors={(400, 401, 404, 503): AlephAlphaErrorSchema},
)
def tokenizer(name: str) -> Response:
    """Fetch a model's `tokenizer.json`, with which the `tokenizers` library does as `/tokenize`."""
    return Response(services().tokenizers.json_text(name), content_type=JSON)


ROOM = Room(
    blueprint=blueprint,
    error_body=render_error,
    error_status=error_status,
    paths=(
        *with_version("/version"),
        *with_version("/models_available"),
        *with_version("/models/*/tokenizer"),
    ),
)
