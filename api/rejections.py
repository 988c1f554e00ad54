"""What the HTTP side itself refuses or gives up; `api.errors` says what each is in HTTP."""

from __future__ import annotations

from workers.contract.errors import (
    InvalidParams,
    JobError,
    NeodimError,
    RequestRejected,
    Unavailable,
)


class UnsupportedParameter(InvalidParams):
    """The request wants what other servers of its protocol may do, and this one does not."""

    code = "unsupported_parameter"


class MalformedBody(RequestRejected):
    """The body is not one JSON object that means the same to everybody."""

    code = "malformed_body"


class BodyTooLarge(RequestRejected):
    """The body is longer than this server reads."""

    code = "body_too_large"


class WrongMediaType(RequestRejected):
    """The body is said to be something else than what is read here."""

    code = "unsupported_media_type"


class BadRequest(RequestRejected):
    """The request's line or headers cannot be understood."""

    code = "bad_request"


class Unauthorized(NeodimError):
    """No valid API key came with the request."""

    code = "unauthorized"


class PathNotFound(NeodimError):
    """Nothing is served at this path."""

    code = "not_found"


class MethodNotAllowed(NeodimError):
    """The path is served, but not for this method."""

    code = "method_not_allowed"


class ClientGone(NeodimError):
    """The client closed its connection before the answer; nobody reads this."""

    code = "client_gone"


class JobCancelled(JobError):
    """The job that a synchronous call waits for was cancelled by somebody else."""

    code = "job_cancelled"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} was cancelled; /v1/jobs/{job_id} has what was made so far")


class PictureNotFound(JobError):
    """The job has no picture of that number, or it was kept long enough."""

    code = "picture_not_found"


class ServiceStopping(Unavailable):
    """The service stops before the job that a synchronous call waits for has ended."""

    code = "service_stopping"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"the service stops; /v1/jobs/{job_id} goes on when it is back")


class NoServerLeft(Unavailable):
    """A model was registered here by other servers, and none of them answers."""

    code = "no_server_left"
    retry_after_s = 10

    def __init__(self, model: str) -> None:
        super().__init__(f"no server of the model {model[:100]} answers")


class ForwardedAlready(NeodimError):
    """A request that another node forwarded would have to be forwarded again."""

    code = "forwarded_already"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"the model {model[:100]} is not served here, and the request was forwarded"
        )
