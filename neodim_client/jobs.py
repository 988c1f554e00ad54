"""Jobs as `/v1/jobs` shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from neodim_client.completion import CompletionResponse
from neodim_client.embedding import EmbeddingResponse
from neodim_client.errors import JobCancelled, JobError, JobFailed
from neodim_client.evaluation import EvaluationResponse
from neodim_client.explanation import ExplanationResponse
from neodim_client.generate import GenerateResponse
from neodim_client.wire import Json

R = TypeVar("R")

NEODIM = "neodim"
COMPLETION = "aleph_alpha"
EMBEDDING = "aleph_alpha_embedding"
EVALUATION = "aleph_alpha_evaluation"
EXPLANATION = "aleph_alpha_explanation"

_RESULTS: Mapping[str, Callable[[Json], Any]] = {
    NEODIM: GenerateResponse.from_json,
    COMPLETION: CompletionResponse.from_json,
    EMBEDDING: EmbeddingResponse.from_json,
    EVALUATION: EvaluationResponse.from_json,
    EXPLANATION: ExplanationResponse.from_json,
}
"""How results are read, by protocol; those of other protocols stay JSON."""


class JobState(StrEnum):
    """Where a job is; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will happen to the job."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True)
class Progress:
    """How far a job is.

    Args:
        done: tokens of all its texts, steps of all its pictures, or passes over what is only read.
        expected: how many there will be at most; 0 = not known yet.
        unit: which of these.
    """

    done: int
    expected: int
    unit: Literal["tokens", "steps", "passes"]


@dataclass(frozen=True)
class JobProblem:
    """Why a job failed.

    Args:
        code: the server's word for it.
        message: what it says.
    """

    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Job(Generic[R]):
    """One job as it stands.

    Args:
        id: by which the server knows it.
        protocol: of its request.
        model: that does it.
        state: where it is.
        created_at, started_at, finished_at: when, None = not yet.
        attempt: 0 until a worker takes it, then 1, 2, ...
        worker: who has it, or had it last.
        is_possible: whether a worker serves its model now.
        progress: how far it is.
        result: what its protocol's own call would answer, None = nothing was made yet.
        is_partial: whether that is what a cancelled job has made.
        error: why it failed.
    """

    id: str
    protocol: str
    model: str
    state: JobState
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    worker: str | None
    is_possible: bool
    progress: Progress
    result: R | None
    is_partial: bool
    error: JobProblem | None

    def answer(self) -> R:
        """The result of a job that has succeeded.

        Raises:
            JobFailed: with the code and the message of its failure.
            JobCancelled: it was cancelled; a result that it has is a part of one.
            JobError: it has not ended yet.
        """
        if self.state is JobState.FAILED:
            problem = self.error or JobProblem("job_failed", "the server does not say why")
            message = f"job {self.id} failed: {problem.message}"
            raise JobFailed(message, code=problem.code, job_id=self.id)
        if self.state is JobState.CANCELLED:
            raise JobCancelled(f"job {self.id} was cancelled", code="job_cancelled", job_id=self.id)
        if self.state is not JobState.SUCCEEDED or self.result is None:
            raise JobError(f"job {self.id} is {self.state}: it has no answer", job_id=self.id)
        return self.result

    @staticmethod
    def from_json(json: Json) -> Job[Any]:
        """The job that JSON shows.

        Raises:
            KeyError: a field is missing.
            ValueError: a state or a time is none.
        """
        created_at = _moment(json["created_at"])
        if created_at is None:
            raise ValueError("created_at: a job has a time of creation")
        result, error = json["result"], json["error"]
        return Job(
            id=json["id"],
            protocol=json["protocol"],
            model=json["model"],
            state=JobState(json["state"]),
            created_at=created_at,
            started_at=_moment(json["started_at"]),
            finished_at=_moment(json["finished_at"]),
            attempt=json["attempt"],
            worker=json["worker"],
            is_possible=json["is_possible"],
            progress=_progress(json["progress"]),
            result=None if result is None else _RESULTS.get(json["protocol"], dict)(result),
            is_partial=bool(json.get("partial")),
            error=None if error is None else JobProblem(error["code"], error["message"]),
        )


@dataclass(frozen=True)
class StateChanged:
    """The job went into a state.

    Args:
        id: the event's, to go on behind it.
        state: the new one.
    """

    id: str
    state: JobState


@dataclass(frozen=True)
class TextAdded:
    """A text of the job grew.

    Args:
        id: the event's, to go on behind it.
        index: which text.
        text: what was added.
    """

    id: str
    index: int
    text: str


@dataclass(frozen=True)
class JobEnded(Generic[R]):
    """The last event.

    Args:
        id: the event's.
        job: as it ended.
    """

    id: str
    job: Job[R]


JobEvent: TypeAlias = StateChanged | TextAdded | JobEnded[R]
"""What a job's stream tells."""


def _progress(json: Json) -> Progress:
    if "tokens_generated" in json:
        return Progress(json["tokens_generated"], json["tokens_expected"], "tokens")
    unit: Literal["steps", "passes"] = "steps" if "steps_done" in json else "passes"
    return Progress(json[f"{unit}_done"], json[f"{unit}_expected"], unit)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
