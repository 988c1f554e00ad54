"""HTTP answers: what they carry, or the error that they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from neodim_client.errors import ApiError, InvalidAnswer, kind_of

T = TypeVar("T")

SHOWN_CHARACTERS = 200
"""Of a body that is no error of a known form."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Args:
        status: the HTTP status.
        headers: by name in lower case.
        content: the body; empty for a stream that has begun.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes = b""

    @property
    def is_good(self) -> bool:
        """Whether it is what was asked for; redirects are not followed."""
        return 200 <= self.status < 300


def reading(from_json: Callable[[Any], T]) -> Callable[[Answer], T]:
    """A reader of answers whose body is JSON.

    Args:
        from_json: makes the value; its KeyError, TypeError and ValueError are those of the answer.
    """
    return lambda answer: parse(answer.content, from_json)


def parse(content: bytes | str, from_json: Callable[[Any], T]) -> T:
    """What JSON of a server says.

    Raises:
        InvalidAnswer: it is no JSON, or lacks something.
    """
    try:
        return from_json(json.loads(content))
    except KeyError as error:
        raise InvalidAnswer(f"the server's answer lacks {error}") from error
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        excerpt = repr(content[:SHOWN_CHARACTERS])
        raise InvalidAnswer(
            f"the server's answer cannot be read: {error}; it begins with {excerpt}"
        ) from error


def error_of(answer: Answer, job_id: str | None) -> ApiError:
    """The error that an answer is.

    Args:
        answer: one that is not good.
        job_id: the job that the call was about.
    """
    code, message = _told(answer)
    request_id = answer.headers.get("x-request-id")
    # A waiting call goes by the id of its job; an error that is about the job names it.
    if job_id is None and request_id and request_id in message:
        job_id = request_id
    return kind_of(answer.status, code)(
        message,
        status=answer.status,
        code=code,
        request_id=request_id,
        job_id=job_id,
        retry_after_s=_retry_after_s(answer.headers.get("retry-after")),
    )


def _told(answer: Answer) -> tuple[str | None, str]:
    """Code and message of an error's body, in any of the protocols' forms."""
    try:
        body = json.loads(answer.content)
    except (RecursionError, ValueError):
        body = None
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        code, message = error.get("code"), error.get("message")
    else:
        code, message = body.get("code") if isinstance(body, dict) else None, error
    if not isinstance(message, str):
        shown = answer.content.decode("utf-8", "replace").strip()[:SHOWN_CHARACTERS]
        message = f"HTTP status {answer.status}" + (f": {shown}" if shown else "")
    return code.lower() if isinstance(code, str) else None, message


def _retry_after_s(header: str | None) -> float | None:
    """Seconds that a Retry-After header asks for (RFC 9110, 10.2.3), None = it asks for nothing."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
