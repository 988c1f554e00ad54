"""Writes what models found by reading as the vendor's clients read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workers.contract.job_record import JobRecord
from workers.contract.reading_job import (
    AreaScore,
    Embedding,
    EmbeddingResult,
    EvaluationResult,
    Explanation,
    ExplanationResult,
    PartScore,
    TextScore,
)


def render_evaluation(record: JobRecord) -> dict[str, Any]:
    """The answer to a request of `/evaluate`."""
    result = record.result
    assert isinstance(result, EvaluationResult), "only what has a result is rendered"
    perplexity = -result.log_prob
    return {
        "model_version": record.model,
        "result": {
            "log_probability": result.log_prob,
            "log_perplexity": perplexity,
            "log_perplexity_per_token": perplexity / result.n_expected,
            "log_perplexity_per_character": perplexity / result.n_characters,
            "correct_greedy": result.is_greedy,
            "token_count": result.n_expected,
            "character_count": result.n_characters,
            "completion": result.likeliest_text,
        },
        "num_tokens_prompt_total": result.n_prompt + result.n_expected,
    }


def render_explanation(record: JobRecord) -> dict[str, Any]:
    """The answer to a request of `/explain`."""
    result = record.result
    assert isinstance(result, ExplanationResult), "only what has a result is rendered"
    explanations = [_explanation(result.item_kinds, each) for each in result.explanations]
    return {"model_version": record.model, "explanations": explanations}


def render_embedding(record: JobRecord) -> dict[str, Any]:
    """The answer to a request of `/embed`."""
    (embedding,) = _embeddings(record)
    layers: dict[str, dict[str, Sequence[float]]] = {}
    for layer, pooling, vector in embedding.vectors:
        layers.setdefault(f"layer_{layer}", {})[pooling] = vector
    return {
        "model_version": record.model,
        "embeddings": layers,
        "tokens": embedding.tokens,
        "num_tokens_prompt_total": embedding.n_tokens,
    }


def render_semantic(record: JobRecord) -> dict[str, Any]:
    """The answer to a request of `/semantic_embed`."""
    (embedding,) = _embeddings(record)
    return {
        "model_version": record.model,
        "embedding": _only_vector(embedding),
        "num_tokens_prompt_total": embedding.n_tokens,
    }


def render_batch(record: JobRecord) -> dict[str, Any]:
    """The answer to a request of `/batch_semantic_embed`."""
    embeddings = _embeddings(record)
    return {
        "model_version": record.model,
        "embeddings": [_only_vector(each) for each in embeddings],
        "num_tokens_prompt_total": sum(each.n_tokens for each in embeddings),
    }


def _embeddings(record: JobRecord) -> tuple[Embedding, ...]:
    assert isinstance(record.result, EmbeddingResult), "only what has a result is rendered"
    return record.result.embeddings


def _only_vector(embedding: Embedding) -> Sequence[float]:
    ((_, _, vector),) = embedding.vectors
    return vector


def _explanation(kinds: Sequence[str], explanation: Explanation) -> dict[str, Any]:
    items = [
        {"type": kind, "scores": [_score(each) for each in scores]}
        for kind, scores in zip(kinds, explanation.items, strict=True)
    ]
    of_target = {"type": "target", "scores": [_score(each) for each in explanation.of_target]}
    return {"target": explanation.target, "items": [*items, of_target]}


def _score(part: PartScore) -> dict[str, Any] | float:
    """A part's score; token ids have nothing else to tell."""
    if isinstance(part, TextScore):
        return {"start": part.start, "length": part.length, "score": part.score}
    if isinstance(part, AreaScore):
        rect = {name: getattr(part, name) for name in ("left", "top", "width", "height")}
        return {"rect": rect, "score": part.score}
    return part.score
