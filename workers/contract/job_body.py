"""Jobs and results of every kind as JSON; the only place that knows all kinds there are.

A body says its kind in the field `kind`; text jobs, the first there were, say nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from workers.contract.image_job import ImageJob, ImageResult
from workers.contract.text_job import TextJob
from workers.contract.text_result import TextResult

Job: TypeAlias = TextJob | ImageJob
Result: TypeAlias = TextResult | ImageResult


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
    if _kind_of(body) == "image":
        return msgspec.json.decode(body, type=ImageJob)
    return msgspec.json.decode(body, type=TextJob)


def decode_result(body: bytes) -> Result:
    """The result that `encode` wrote.

    Raises:
        msgspec.ValidationError: not a result of this version.
    """
    if _kind_of(body) == "image":
        return msgspec.json.decode(body, type=ImageResult)
    return msgspec.json.decode(body, type=TextResult)


def n_expected(job: Job) -> int:
    """How much there is to do: tokens of a text job, steps of an image job."""
    return job.n_expected_steps if isinstance(job, ImageJob) else job.n_expected_tokens


def _kind_of(body: bytes) -> str:
    return msgspec.json.decode(body, type=_Kind).kind
