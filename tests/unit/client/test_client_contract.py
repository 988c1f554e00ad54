"""What the client sends is what the server reads, and both call protocols by the same names."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from api.aleph_alpha.reading_routes import EMBEDDING, EVALUATION, EXPLANATION
from api.aleph_alpha.reading_schema import EmbeddingSchema, EvaluationSchema, ExplanationSchema
from api.aleph_alpha.routes import COMPLETION
from api.aleph_alpha.schema import AlephAlphaCompletionSchema
from api.aleph_alpha.token_schema import DetokenizeSchema, TokenizeSchema
from api.neodim.routes import NEODIM
from api.neodim.schema import GeneratedSchema, GeneratedSequenceSchema, GenerateSchema, GpuSchema
from neodim_client import (
    CompletionRequest,
    CustomGranularity,
    DetokenizationRequest,
    EmbeddingRequest,
    EvaluationRequest,
    ExplanationRequest,
    GeneratedSequence,
    GenerateRequest,
    GenerateResponse,
    Gpu,
    Prompt,
    TextControl,
    TokenizationRequest,
    jobs,
)

PROMPT = Prompt.from_text("a b", [TextControl(0, 1, 0.5)])
GENERATE = {"generated_tokens_count": 1, "max_total_tokens": 8}


def sent(request: Any) -> dict[str, Any]:
    """A request as it arrives, with a model if it names none itself."""
    model = {} if isinstance(request, GenerateRequest) else {"model": "m"}
    body: dict[str, Any] = json.loads(json.dumps({**request.to_json(), **model}))
    return body


def test_protocols_have_the_servers_names() -> None:
    ours = [jobs.NEODIM, jobs.COMPLETION, jobs.EVALUATION, jobs.EXPLANATION, jobs.EMBEDDING]

    assert ours == [each.name for each in (NEODIM, COMPLETION, EVALUATION, EXPLANATION, EMBEDDING)]


@pytest.mark.parametrize(
    ("request_", "schema", "required"),
    [
        (GenerateRequest(**GENERATE), GenerateSchema, GENERATE),
        (CompletionRequest(PROMPT), AlephAlphaCompletionSchema, {"maximum_tokens": 64}),
        (EvaluationRequest(PROMPT, "c"), EvaluationSchema, {"completion_expected": "c"}),
        (ExplanationRequest(PROMPT, "c"), ExplanationSchema, {"target": "c"}),
        (
            EmbeddingRequest(PROMPT, [0, -1], ["mean"]),
            EmbeddingSchema,
            {"layers": [0, -1], "pooling": ["mean"]},
        ),
        (DetokenizationRequest([1]), DetokenizeSchema, {"token_ids": [1]}),
        (
            TokenizationRequest("a"),
            TokenizeSchema,
            {"prompt": "a", "tokens": True, "token_ids": True},
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_request_means_what_the_server_takes_for_granted(
    request_: Any, schema: Any, required: dict[str, Any]
) -> None:
    body = sent(request_)
    least = {name: body[name] for name in ("model", "prompt") if name in body}

    assert schema().load(body) == schema().load({**least, **required})


def test_granularity_of_ones_own_is_read() -> None:
    request = ExplanationRequest(PROMPT, "c", prompt_granularity=CustomGranularity(";"))

    loaded = ExplanationSchema().load(sent(request))

    assert loaded["prompt_granularity"] == ("custom", ";")


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (GenerateRequest, GenerateSchema),
        (GenerateResponse, GeneratedSchema),
        (GeneratedSequence, GeneratedSequenceSchema),
        (Gpu, GpuSchema),
    ],
)
def test_fields_of_generate_are_the_servers(kind: Any, schema: Any) -> None:
    assert {each.name for each in fields(kind)} == set(schema().fields)


def test_completion_fields_are_the_servers_but_for_those_of_calls() -> None:
    beside = {"model", "stream", "steering_concepts", "hosting", "tags"}

    theirs = set(AlephAlphaCompletionSchema().fields) - beside
    assert {each.name for each in fields(CompletionRequest)} == theirs
