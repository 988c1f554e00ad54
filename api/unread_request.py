"""Answers requests in gunicorn's place where the application cannot, in JSON as everywhere."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import unquote

from gunicorn.http.errors import (
    ExpectationFailed,
    LimitRequestHeaders,
    LimitRequestLine,
    UnsupportedTransferCoding,
)

from api.app import error_answer_at
from api.errors import problem_of
from api.rejections import BadRequest
from api.replies import to_json
from workers.contract.errors import NeodimError

STATUSES: Mapping[type[Exception], HTTPStatus] = {
    LimitRequestLine: HTTPStatus.REQUEST_URI_TOO_LONG,
    LimitRequestHeaders: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    ExpectationFailed: HTTPStatus.EXPECTATION_FAILED,
    UnsupportedTransferCoding: HTTPStatus.NOT_IMPLEMENTED,
}
"""Where it is not 400."""

SHOWN_CHARACTERS = 200


def refusal(error: Exception) -> bytes:
    """The whole answer to what is no request, for the reason that gunicorn gives.

    The protocol is that of `/generate`: where there is no request, there is no path to go by.
    """
    status = STATUSES.get(type(error), HTTPStatus.BAD_REQUEST)
    return _answer(BadRequest(str(error)[:SHOWN_CHARACTERS]), status)


def failure(path: str) -> bytes:
    """The whole answer to a request that the server itself failed at.

    Args:
        path: of the request as it came, "" = there is none to go by.
    """
    error = NeodimError("an internal error; the log says more")
    return _answer(error, HTTPStatus.INTERNAL_SERVER_ERROR, unquote(path))


def _answer(error: NeodimError, status: HTTPStatus, path: str = "") -> bytes:
    problem = replace(problem_of(error), status=status.value)
    body = to_json(error_answer_at(path)(problem)[0])
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-Request-Id: {uuid.uuid4()}",
    )
    return "".join(f"{line}\r\n" for line in (*head, "")).encode("ascii") + body
