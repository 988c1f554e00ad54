"""What a model server's answer begins with, and the only place that judges whether it can go on."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.errors import FirstHeaderLineIsContinuationDefect, MissingHeaderBodySeparatorDefect

EVENTS = "text/event-stream"
UNKNOWN_TYPE = "application/octet-stream"

HEADERS = (
    "Content-Encoding",
    "Cache-Control",
    "Retry-After",
    "X-Should-Retry",
)
"""What comes back with an answer, beside its type and length."""

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(?:[ \t]*;[\t -~]*)?")
_LENGTH = re.compile(r"[0-9]{1,15}")
_CLEAN = re.compile(r"[!-~](?:[\t -~]*[!-~])?")
_UNREADABLE = (FirstHeaderLineIsContinuationDefect, MissingHeaderBodySeparatorDefect)


class BadAnswer(http.client.HTTPException):
    """A server's answer is none that a client can be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHead:
    """The head of an answer that can be passed on.

    Args:
        status: 200, or that of an error.
        content_type: media type, with its parameters.
        length: of the body in bytes, None = it is not said.
        is_framed: whether the end of the body is more than the end of the connection.
        headers: others that go on.
    """

    status: int
    content_type: str
    length: int | None
    is_framed: bool
    headers: Mapping[str, str]

    @property
    def is_events(self) -> bool:
        """Whether the body is a stream of server-sent events."""
        return self.content_type.partition(";")[0].strip().lower() == EVENTS


def read_head(answer: http.client.HTTPResponse) -> AnswerHead:
    """Judge the head of an answer, of which the body is not read yet.

    Raises:
        BadAnswer: it cannot be passed on.
    """
    # http.client takes what follows a line that is no header for a part of the body.
    if any(isinstance(each, _UNREADABLE) for each in answer.headers.defects):
        raise BadAnswer("its head has lines that are no headers")
    # One request was sent: a 1xx promises another answer, and the others have nothing for clients.
    if answer.status != 200 and not 400 <= answer.status <= 599:
        raise BadAnswer(f"its status is {answer.status}")
    _check_framing(answer)
    return AnswerHead(
        status=answer.status,
        content_type=_content_type(answer),
        length=answer.length,
        is_framed=answer.chunked or answer.length is not None,
        headers=_clean_headers(answer),
    )


def _check_framing(answer: http.client.HTTPResponse) -> None:
    """Refuse what http.client overlooks, and then takes the wrong bytes for the body."""
    codings = answer.headers.get_all("Transfer-Encoding", [])
    if len(codings) > 1 or (codings and not answer.chunked):
        raise BadAnswer("its Transfer-Encoding is not just chunked")
    lengths = set(answer.headers.get_all("Content-Length", []))
    if len(lengths) > 1 or not all(_LENGTH.fullmatch(each.strip(" \t")) for each in lengths):
        raise BadAnswer("its Content-Length is no number")


def _content_type(answer: http.client.HTTPResponse) -> str:
    content_type = (answer.getheader("Content-Type") or "").strip(" \t") or UNKNOWN_TYPE
    if not _MEDIA_TYPE.fullmatch(content_type):
        raise BadAnswer("its Content-Type is no media type")
    return content_type


def _clean_headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    """Without those that a server may not send: in several lines, or with control characters."""
    found = {name: (answer.getheader(name) or "").strip(" \t") for name in HEADERS}
    return {name: value for name, value in found.items() if _CLEAN.fullmatch(value)}
