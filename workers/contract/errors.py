"""The project's error tree beyond sampling's refusals; `code` is stable and clients may read it.

Only `api.errors` knows what an error is in HTTP.
"""

from __future__ import annotations

from neodim_sampling.errors import (
    InvalidParams,
    NeodimError,
    NoTokenLeft,
    PromptTooLong,
    RequestRejected,
    StopPatternTimeout,
)

__all__ = [
    "EngineFailure",
    "EngineStopped",
    "InvalidParams",
    "JobError",
    "JobFailed",
    "JobNotFound",
    "LeaseLost",
    "MissingCapability",
    "ModelLoading",
    "NeodimError",
    "NoTokenLeft",
    "OutOfMemory",
    "PromptTooLong",
    "QueueUnavailable",
    "RequestRejected",
    "StopPatternTimeout",
    "StoreUnavailable",
    "TemplateRefused",
    "Unavailable",
    "UnknownModel",
    "WorkerLost",
]


class UnknownModel(InvalidParams):
    """No model of that name is configured for such requests.

    Args:
        problem: what is wrong and what is allowed.
    """

    code = "unknown_model"

    def __init__(self, problem: str) -> None:
        super().__init__("model", problem)


class TemplateRefused(RequestRejected):
    """The model's chat template does not take the conversation."""

    code = "template_refused"


class MissingCapability(RequestRejected):
    """The model cannot do what other models can."""

    code = "missing_capability"


class JobError(NeodimError):
    """Something about one job."""

    code = "job_error"


class JobNotFound(JobError):
    """There is no such job, or it was kept long enough."""

    code = "job_not_found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id[:64]!r}, or it ended too long ago")


class LeaseLost(JobError):
    """Another attempt owns the job now, so nothing more may be written about it."""

    code = "lease_lost"


class JobFailed(JobError):
    """A job ended in `failed`; carries the code and message of its record."""

    code = "job_failed"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.recorded_code = code


class Unavailable(NeodimError):
    """Not now; the same request may work later."""

    code = "unavailable"
    retry_after_s = 2


class StoreUnavailable(Unavailable):
    """Redis does not answer."""

    code = "store_unavailable"


class QueueUnavailable(Unavailable):
    """The message broker does not answer."""

    code = "queue_unavailable"


class ModelLoading(Unavailable):
    """No worker is ready for the model yet."""

    code = "model_loading"
    retry_after_s = 3


class EngineFailure(NeodimError):
    """The worker could not do what it had accepted."""

    code = "engine_failure"


class OutOfMemory(EngineFailure):
    """The device has no memory for the request, even alone."""

    code = "out_of_memory"


class EngineStopped(EngineFailure):
    """The engine is going away; the job goes back to the queue."""

    code = "engine_stopped"


class WorkerLost(EngineFailure):
    """Every attempt at the job lost its worker."""

    code = "worker_lost"
