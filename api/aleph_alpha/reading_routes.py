"""`/evaluate`, `/explain`, `/embed` and the semantic embeddings, with and without `/v1`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Response
from flask_smorest import Blueprint

from api import synchronous
from api.aleph_alpha.errors import AlephAlphaErrorSchema, error_status, render_error
from api.aleph_alpha.paths import with_version
from api.aleph_alpha.prompt_body import read_prompt_body
from api.aleph_alpha.reading_adapter import (
    load_batch,
    load_embedding,
    load_evaluation,
    load_explanation,
    load_semantic,
)
from api.aleph_alpha.reading_answers import (
    BatchSemanticAnswerSchema,
    EmbeddingAnswerSchema,
    EvaluationAnswerSchema,
    ExplanationAnswerSchema,
    SemanticAnswerSchema,
)
from api.aleph_alpha.reading_renderer import (
    render_batch,
    render_embedding,
    render_evaluation,
    render_explanation,
    render_semantic,
)
from api.aleph_alpha.reading_schema import (
    BatchSemanticEmbeddingSchema,
    EmbeddingSchema,
    EvaluationSchema,
    ExplanationSchema,
    SemanticEmbeddingSchema,
)
from api.documentation import document
from api.jobs.schema import JobSchema
from api.protocols import Protocol, Room

_reading = partial(Protocol, progress=("passes_done", "passes_expected"))

EVALUATION = _reading(name="aleph_alpha_evaluation", load=load_evaluation, render=render_evaluation)
EXPLANATION = _reading(
    name="aleph_alpha_explanation", load=load_explanation, render=render_explanation
)
EMBEDDING = _reading(name="aleph_alpha_embedding", load=load_embedding, render=render_embedding)
SEMANTIC = _reading(
    name="aleph_alpha_semantic_embedding", load=load_semantic, render=render_semantic
)
BATCH = _reading(name="aleph_alpha_batch_semantic_embedding", load=load_batch, render=render_batch)
PROTOCOLS = (EVALUATION, EXPLANATION, EMBEDDING, SEMANTIC, BATCH)

EVALUATE, EXPLAIN, EMBED, SEMANTIC_EMBED, BATCH_SEMANTIC_EMBED = (
    with_version(path)
    for path in ("/evaluate", "/explain", "/embed", "/semantic_embed", "/batch_semantic_embed")
)

blueprint = Blueprint("aleph_alpha_reading", __name__, description="What models find in texts")

_ERRORS: Mapping[tuple[int, ...], Any] = {(400, 401, 404, 409, 500, 503): AlephAlphaErrorSchema}


@document(
    blueprint,
    EVALUATE[0],
    "POST",
    also=EVALUATE[1:],
    body=EvaluationSchema,
    answers={200: EvaluationAnswerSchema, 202: JobSchema},
    errors=_ERRORS,
    headers=("Prefer",),
    query=("nice",),
)
def evaluate() -> Response:
    """Tell how likely a text is behind a prompt."""
    return synchronous.call(EVALUATION, read_prompt_body())


@document(
    blueprint,
    EXPLAIN[0],
    "POST",
    also=EXPLAIN[1:],
    body=ExplanationSchema,
    answers={200: ExplanationAnswerSchema, 202: JobSchema},
    errors=_ERRORS,
    headers=("Prefer",),
    query=("nice",),
)
def explain() -> Response:
    """Tell which parts of a prompt speak for a text behind it.

    The model reads prompt and text once as they are, and once for each part that is looked at.
    """
    return synchronous.call(EXPLANATION, read_prompt_body())


@document(
    blueprint,
    EMBED[0],
    "POST",
    also=EMBED[1:],
    body=EmbeddingSchema,
    answers={200: EmbeddingAnswerSchema, 202: JobSchema},
    errors=_ERRORS,
    headers=("Prefer",),
    query=("nice",),
)
def embed() -> Response:
    """Tell the states of a model's layers when it has read a prompt."""
    return synchronous.call(EMBEDDING, read_prompt_body())


@document(
    blueprint,
    SEMANTIC_EMBED[0],
    "POST",
    also=SEMANTIC_EMBED[1:],
    body=SemanticEmbeddingSchema,
    answers={200: SemanticAnswerSchema, 202: JobSchema},
    errors=_ERRORS,
    headers=("Prefer",),
    query=("nice",),
)
def semantic_embed() -> Response:
    """Tell a vector for the meaning of a text; for models that were trained to."""
    return synchronous.call(SEMANTIC, read_prompt_body())


@document(
    blueprint,
    BATCH_SEMANTIC_EMBED[0],
    "POST",
    also=BATCH_SEMANTIC_EMBED[1:],
    body=BatchSemanticEmbeddingSchema,
    answers={200: BatchSemanticAnswerSchema, 202: JobSchema},
    errors=_ERRORS,
    headers=("Prefer",),
    query=("nice",),
)
def batch_semantic_embed() -> Response:
    """The same of several texts."""
    return synchronous.call(BATCH, read_prompt_body())


ROOM = Room(
    blueprint=blueprint,
    error_body=render_error,
    error_status=error_status,
    paths=(*EVALUATE, *EXPLAIN, *EMBED, *SEMANTIC_EMBED, *BATCH_SEMANTIC_EMBED),
)
