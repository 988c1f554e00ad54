"""Jobs and results of every kind as JSON; the only place that knows all kinds there are.

A body says its kind in the field `kind`; text jobs, the first there were, say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from neodim_sampling.prompt_items import ItemsPrompt
from workers.contract.image_job import ImageJob, ImageResult
from workers.contract.reading_job import (
    EmbeddingJob,
    EmbeddingResult,
    EvaluationJob,
    EvaluationResult,
    ExplanationJob,
    ExplanationResult,
    ReadingJob,
    ReadingResult,
)
from workers.contract.text_job import TextJob
from workers.contract.text_result import TextResult

Job: TypeAlias = TextJob | ImageJob | ReadingJob
Result: TypeAlias = TextResult | ImageResult | ReadingResult

_JOBS: Mapping[str, Any] = {
    "text": TextJob,
    "image": ImageJob,
    "evaluation": EvaluationJob,
    "explanation": ExplanationJob,
    "embedding": EmbeddingJob,
}
_RESULTS: Mapping[str, Any] = {
    "text": TextResult,
    "image": ImageResult,
    "evaluation": EvaluationResult,
    "explanation": ExplanationResult,
    "embedding": EmbeddingResult,
}


@dataclass(frozen=True, slots=True)
class _Kind:
    kind: str = "text"


def encode(value: Job | Result) -> bytes:
    """A job or a result as JSON."""
    return msgspec.json.encode(value)


def decode_job(body: bytes) -> Job:
    """The job that `encode` wrote.

    Raises:
        msgspec.ValidationError: not a job of this version.
        InvalidParams: a value is out of its range.
    """
    job: Job = _decode(body, _JOBS)
    return job


def decode_result(body: bytes) -> Result:
    """The result that `encode` wrote.

    Raises:
        msgspec.ValidationError: not a result of this version.
    """
    result: Result = _decode(body, _RESULTS)
    return result


def n_expected(job: Job) -> int:
    """How much there is to do: tokens of a text job, steps of an image job; 0 = not known."""
    if isinstance(job, ImageJob):
        return job.n_expected_steps
    return job.n_expected_tokens if isinstance(job, TextJob) else 0


def has_pictures(job: Job) -> bool:
    """Whether a model that reads pictures is needed for it."""
    if isinstance(job, ImageJob):
        return False
    prompts = job.prompts if isinstance(job, EmbeddingJob) else (job.prompt,)
    return any(isinstance(each, ItemsPrompt) and each.has_pictures for each in prompts)


def _decode(body: bytes, types: Mapping[str, Any]) -> Any:
    kind = msgspec.json.decode(body, type=_Kind).kind
    if kind not in types:
        raise msgspec.ValidationError(f"a body of the unknown kind {kind[:40]!r}")
    return msgspec.json.decode(body, type=types[kind])
