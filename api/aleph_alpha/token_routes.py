"""`/tokenize` and `/detokenize`, with and without `/v1`."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from flask_smorest import Blueprint

from api.aleph_alpha.errors import AlephAlphaErrorSchema, error_status, render_error
from api.aleph_alpha.paths import with_version
from api.aleph_alpha.token_schema import (
    DetokenizedSchema,
    DetokenizeSchema,
    TokenizeSchema,
    TokensSchema,
)
from api.documentation import document
from api.json_body import read_json
from api.protocols import Room
from api.replies import json_reply
from api.request_schema import load
from api.services import services
from workers.contract.errors import InvalidParams

blueprint = Blueprint("aleph_alpha_tokens", __name__, description="Tokens, for Aleph Alpha clients")

_TOKENIZE, _DETOKENIZE = TokenizeSchema(), DetokenizeSchema()
_REFUSED = (400, 401, 404, 503)


@document(
    blueprint,
    "/tokenize",
    "POST",
    also=("/v1/tokenize",),
    body=TokenizeSchema,
    answers={200: TokensSchema},
    errors={_REFUSED: AlephAlphaErrorSchema},
)
def tokenize() -> Response:
    """Cut a text into tokens, as the model's own `tokenizer.json` does."""
    fields = load(_TOKENIZE, read_json(request))
    if not fields["tokens"] and not fields["token_ids"]:
        raise InvalidParams("tokens", "must be true, or token_ids: else there is nothing to tell")
    encoding = services().tokenizers.encode(fields["model"], fields["prompt"])
    told: dict[str, Any] = {"tokens": encoding.tokens} if fields["tokens"] else {}
    if fields["token_ids"]:
        told["token_ids"] = encoding.ids
    return json_reply(told)


@document(
    blueprint,
    "/detokenize",
    "POST",
    also=("/v1/detokenize",),
    body=DetokenizeSchema,
    answers={200: DetokenizedSchema},
    errors={_REFUSED: AlephAlphaErrorSchema},
)
def detokenize() -> Response:
    """Make a text of tokens, as the model's own `tokenizer.json` does."""
    fields = load(_DETOKENIZE, read_json(request))
    text = services().tokenizers.decode(fields["model"], fields["token_ids"])
    return json_reply({"result": text})


ROOM = Room(
    blueprint=blueprint,
    error_body=render_error,
    error_status=error_status,
    paths=(*with_version("/tokenize"), *with_version("/detokenize")),
)
