"""Everything that can go wrong, as one tree."""

from __future__ import annotations


class NeodimClientError(Exception):
    """The root: catches whatever this package raises about a server and the way to it.

    Args:
        message: what is wrong, in the server's words if it said anything.
        status: of the HTTP answer, None = there was none, or it was a good one.
        code: the server's word for the error in lower case, None = it gave none.
        request_id: by which the server's log knows the request.
        job_id: the job that it is about.
        retry_after_s: seconds after which the server wants to be asked again.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        job_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.request_id = request_id
        self.job_id = job_id
        self.retry_after_s = retry_after_s


class ConnectionFailed(NeodimClientError):
    """No answer came, or only a part of one.

    Args:
        message: what is wrong.
        was_sent: whether the server may have the request.
    """

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class TimedOut(NeodimClientError):
    """No answer came in time, or the job did not end in time."""


class BrokenStream(NeodimClientError):
    """A stream ended before its end, and could not be taken up again."""


class InvalidAnswer(NeodimClientError):
    """The server answered something that its protocol does not have."""


class ApiError(NeodimClientError):
    """The server answered with an error; this very class if the status is a rare one."""


class RequestRejected(ApiError):
    """The request cannot be done as asked (400, 413, 415)."""


class PromptTooLong(RequestRejected):
    """Prompt and completion do not fit in the model's context."""


class MissingCapability(RequestRejected):
    """The model, or this server, cannot do that."""


class Unauthorized(ApiError):
    """The API key is missing or not valid (401, 403)."""


class NotFound(ApiError):
    """There is no such thing (404)."""


class UnknownModel(NotFound):
    """The server has no model of that name."""


class JobNotFound(NotFound):
    """There is no such job, or it was kept long enough, or it belongs to another key."""


class TooManyRequests(ApiError):
    """This key asks for more than it may (429)."""


class Unavailable(ApiError):
    """The server cannot do it now (503)."""


class QueueFull(Unavailable):
    """Too many requests wait already."""


class ServerFailure(ApiError):
    """The server could not do it (500 and above)."""


class JobError(NeodimClientError):
    """A job ended without its result."""


class JobFailed(JobError):
    """The job failed; `code` says why."""


class JobCancelled(ApiError, JobError):
    """The job was cancelled; what was made so far is kept with it (409 of a waiting call)."""


_BY_CODE: dict[str, type[ApiError]] = {
    "job_cancelled": JobCancelled,
    "job_not_found": JobNotFound,
    "missing_capability": MissingCapability,
    "prompt_too_long": PromptTooLong,
    "queue_full": QueueFull,
    "unknown_model": UnknownModel,
}

_BY_STATUS: dict[int, type[ApiError]] = {
    400: RequestRejected,
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: JobCancelled,
    413: RequestRejected,
    415: RequestRejected,
    429: TooManyRequests,
    503: Unavailable,
}


def kind_of(status: int, code: str | None) -> type[ApiError]:
    """The class of an error.

    Args:
        status: of the answer.
        code: the server's word in lower case, None = it gave none.
    """
    by_status = _BY_STATUS.get(status, ServerFailure if status >= 500 else ApiError)
    return _BY_CODE.get(code or "", by_status)
