"""What each error is in HTTP: the only place that knows. Protocols render the bodies.

Numbers of the table are the `code` of errors under /v1 and never change their meaning.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import redis
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from api import rejections
from api.replies import json_reply
from workers.contract import errors

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one kind of error is in HTTP.

    Args:
        status: the HTTP status.
        number: its stable number.
    """

    status: int
    number: int


ANSWERS: Mapping[type[errors.NeodimError], Answer] = {
    errors.NeodimError: Answer(500, 2001),
    errors.RequestRejected: Answer(400, 2002),
    errors.InvalidParams: Answer(400, 2003),
    errors.PromptTooLong: Answer(400, 2004),
    errors.NoTokenLeft: Answer(400, 2005),
    errors.StopPatternTimeout: Answer(400, 2006),
    errors.UnknownModel: Answer(404, 2007),
    rejections.MalformedBody: Answer(400, 2008),
    rejections.BodyTooLarge: Answer(413, 2009),
    rejections.WrongMediaType: Answer(415, 2010),
    rejections.BadRequest: Answer(400, 2011),
    rejections.Unauthorized: Answer(401, 2012),
    rejections.PathNotFound: Answer(404, 2013),
    rejections.MethodNotAllowed: Answer(405, 2014),
    rejections.ClientGone: Answer(499, 2015),
    errors.TemplateRefused: Answer(400, 2016),
    rejections.UnsupportedParameter: Answer(400, 2017),
    errors.MissingCapability: Answer(400, 2018),
    errors.JobError: Answer(500, 2021),
    errors.JobNotFound: Answer(404, 2022),
    errors.LeaseLost: Answer(500, 2023),
    errors.JobFailed: Answer(500, 2024),
    rejections.JobCancelled: Answer(409, 2025),
    errors.Unavailable: Answer(503, 2031),
    errors.StoreUnavailable: Answer(503, 2032),
    errors.QueueUnavailable: Answer(503, 2033),
    errors.ModelLoading: Answer(503, 2034),
    rejections.ServiceStopping: Answer(503, 2035),
    errors.EngineFailure: Answer(500, 2041),
    errors.OutOfMemory: Answer(500, 2042),
    errors.EngineStopped: Answer(500, 2043),
    errors.WorkerLost: Answer(500, 2044),
    rejections.NoServerLeft: Answer(503, 2051),
    rejections.ForwardedAlready: Answer(508, 2052),
    rejections.PictureNotFound: Answer(404, 2061),
}

HTTP_ERRORS: Mapping[int, type[errors.NeodimError]] = {
    400: rejections.BadRequest,
    404: rejections.PathNotFound,
    405: rejections.MethodNotAllowed,
    413: rejections.BodyTooLarge,
    415: rejections.WrongMediaType,
}
"""The statuses that Flask itself answers with, as errors of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error, ready to be rendered by a protocol.

    Args:
        number: stable number, of the table.
        code: stable word.
        param: the request's field at fault, if one is known.
        headers: headers that belong to the answer.
    """

    status: int
    number: int
    code: str
    message: str
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


_FIELD = re.compile(r"([a-z][a-z0-9_]*): ")

ErrorBody = Callable[[Problem], dict[str, Any]]
"""How a protocol writes an error."""

ErrorStatus = Callable[[Problem], int]
"""Which status a protocol gives it."""

ErrorAnswer = Callable[[Problem], tuple[dict[str, Any], int]]
"""Both."""


def problem_of(error: errors.NeodimError) -> Problem:
    """What an error is in HTTP; a failed job's is that of the code in its record."""
    kind: type[errors.NeodimError] = type(error)
    code = error.code
    if isinstance(error, errors.JobFailed):
        code = error.recorded_code
        kind = _kind_of_code(code)
    answer = next(ANSWERS[each] for each in kind.__mro__ if each in ANSWERS)
    headers = {}
    if issubclass(kind, errors.Unavailable):
        headers["Retry-After"] = str(kind.retry_after_s)
    if isinstance(error, rejections.Unauthorized):
        headers["WWW-Authenticate"] = 'Bearer realm="neodim"'
    if kind is rejections.JobCancelled:
        # OpenAI's clients would send the same request again after a 409.
        headers["X-Should-Retry"] = "false"
    param = error.field if isinstance(error, errors.InvalidParams) else None
    if isinstance(error, errors.JobFailed) and issubclass(kind, errors.RequestRejected):
        # A worker's refusal begins with the field's name, and the record has nothing but its words.
        named = _FIELD.match(str(error))
        param = named[1] if named else None
    return Problem(
        status=answer.status,
        number=answer.number,
        code=code,
        message=str(error),
        param=param,
        headers=headers,
    )


def status_of_table(problem: Problem) -> int:
    """The status that an error has unless a protocol says otherwise."""
    return problem.status


def install(app: Flask, answer_for: Callable[[str], ErrorAnswer]) -> None:
    """Answer every error in JSON.

    Args:
        app: the application.
        answer_for: gives for a path how errors are answered there.
    """

    def reply(problem: Problem) -> Response:
        body, status = answer_for(request.path)(problem)
        return json_reply(body, status, problem.headers)

    def refused(error: errors.NeodimError) -> Response:
        return reply(problem_of(error))

    def store_failed(error: redis.RedisError) -> Response:
        log.warning("Redis failed: %s", error)
        return reply(problem_of(errors.StoreUnavailable("the job store does not answer")))

    def http_failed(error: HTTPException) -> Response:
        return reply(_http_problem(error))

    app.register_error_handler(errors.NeodimError, refused)
    app.register_error_handler(redis.RedisError, store_failed)
    app.register_error_handler(HTTPException, http_failed)


def all_kinds(root: type[errors.NeodimError] = errors.NeodimError) -> Iterator[type[Any]]:
    """The whole tree of errors, root first."""
    yield root
    for child in root.__subclasses__():
        yield from all_kinds(child)


def _kind_of_code(code: str) -> type[errors.NeodimError]:
    """The error that a record's code stands for; a code of another version is a failure of ours."""
    return next((kind for kind in ANSWERS if kind.code == code), errors.EngineFailure)


def _http_problem(error: HTTPException) -> Problem:
    status = error.code or 500
    kind = HTTP_ERRORS.get(status, errors.NeodimError)
    message = {
        404: f"nothing is served at {request.path[:100]}",
        405: f"{request.method[:20]} is not allowed here",
        500: "an internal error; the log says more",
    }.get(status, error.description or error.name)
    allowed = getattr(error, "valid_methods", None)
    return Problem(
        status=status,
        number=ANSWERS[kind].number,
        code=kind.code,
        message=message,
        headers={"Allow": ", ".join(sorted(allowed))} if allowed else {},
    )
