"""Translates requests for which a model only reads into canonical jobs.

Prompts are read exactly as they are: what is told of their parts counts from the client's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api.aleph_alpha.attention_schema import attention_of
from api.aleph_alpha.prompt import TokenOverlap
from api.aleph_alpha.reading_schema import (
    BatchSemanticEmbeddingSchema,
    EmbeddingSchema,
    EvaluationSchema,
    ExplanationSchema,
    Representation,
    SemanticEmbeddingSchema,
    TargetGranularity,
)
from api.request_schema import load
from api.settings import Settings
from neodim_sampling.prompt_items import ItemsPrompt, PromptItem, TextItem
from workers.contract.errors import MissingCapability
from workers.contract.reading_job import EmbeddingJob, EvaluationJob, ExplanationJob, Pooling

BRACKETS: Mapping[Representation, tuple[str, str] | None] = {
    Representation.SYMMETRIC: None,
    Representation.DOCUMENT: ("{", "}"),
    Representation.QUERY: ("[", "]"),
}
"""What stands around a text, as tokens of their own, to tell what it is (SGPT, arXiv:2202.08904,
section 4.1.2)."""

LAST_LAYER = -1

_EVALUATION, _EXPLANATION, _EMBEDDING = EvaluationSchema(), ExplanationSchema(), EmbeddingSchema()
_SEMANTIC, _BATCH = SemanticEmbeddingSchema(), BatchSemanticEmbeddingSchema()


def load_evaluation(body: Mapping[str, Any], settings: Settings) -> EvaluationJob:
    """The job that a request of `/evaluate` asks for.

    Raises:
        RequestRejected: naming the field at fault.
    """
    fields = load(_EVALUATION, body)
    return EvaluationJob(
        model=fields["model"],
        prompt=_prompt(fields, fields["prompt"]),
        expected=fields["completion_expected"],
    )


def load_explanation(body: Mapping[str, Any], settings: Settings) -> ExplanationJob:
    """The job that a request of `/explain` asks for; raises as above."""
    fields = load(_EXPLANATION, body)
    granularity, delimiter = fields["prompt_granularity"]
    return ExplanationJob(
        model=fields["model"],
        prompt=_prompt(fields, fields["prompt"]),
        target=fields["target"],
        factor=fields["control_factor"],
        is_complete=fields["control_token_overlap"] is TokenOverlap.COMPLETE,
        granularity=granularity,
        delimiter=delimiter,
        is_by_token=fields["target_granularity"] is TargetGranularity.TOKEN,
        postprocessing=fields["postprocessing"],
        is_normalised=fields["normalize"],
    )


def load_embedding(body: Mapping[str, Any], settings: Settings) -> EmbeddingJob:
    """The job that a request of `/embed` asks for; raises as above."""
    fields = load(_EMBEDDING, body)
    return EmbeddingJob(
        model=fields["model"],
        prompts=(_prompt(fields, fields["prompt"]),),
        layers=fields["layers"],
        pooling=fields["pooling"],
        is_normalised=fields["normalize"],
        tells_tokens=fields["tokens"],
    )


def load_semantic(body: Mapping[str, Any], settings: Settings) -> EmbeddingJob:
    """The job that a request of `/semantic_embed` asks for.

    Args:
        body: the request's JSON object.
        settings: say whether the model is one for this.

    Raises:
        RequestRejected: naming the field at fault.
        MissingCapability: the model is not for this.
    """
    fields = load(_SEMANTIC, body)
    return _semantic(fields, [fields["prompt"]], settings)


def load_batch(body: Mapping[str, Any], settings: Settings) -> EmbeddingJob:
    """The same of `/batch_semantic_embed`."""
    fields = load(_BATCH, body)
    return _semantic(fields, fields["prompts"], settings)


def _semantic(
    fields: Mapping[str, Any], prompts: Sequence[tuple[PromptItem, ...]], settings: Settings
) -> EmbeddingJob:
    if not settings.semantic_embeddings:
        raise MissingCapability(
            "the service was not started with --semantic-embeddings true; /embed tells the states "
            "of any model"
        )
    if fields["compress_to_size"] is not None:
        raise MissingCapability("compress_to_size: vectors are told whole; must be null")
    brackets = BRACKETS[fields["representation"]]
    return EmbeddingJob(
        model=fields["model"],
        prompts=tuple(_prompt(fields, _within(brackets, each)) for each in prompts),
        layers=(LAST_LAYER,),
        pooling=(Pooling.WEIGHTED_MEAN,),
        is_normalised=fields["normalize"],
    )


def _within(
    brackets: tuple[str, str] | None, items: tuple[PromptItem, ...]
) -> tuple[PromptItem, ...]:
    if brackets is None:
        return items
    opening, closing = (TextItem(text=each) for each in brackets)
    return (opening, *items, closing)


def _prompt(fields: Mapping[str, Any], items: tuple[PromptItem, ...]) -> ItemsPrompt:
    return ItemsPrompt(items=items, attention=attention_of(fields))
