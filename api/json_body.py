"""Reads bodies from their connections, JSON above all; the only reader, for every protocol."""

from __future__ import annotations

from typing import Any

from flask import Request
from gunicorn.http.errors import ParseException

from api.connection import Connection
from api.rejections import BodyTooLarge, MalformedBody, WrongMediaType
from api.strict_json import parse_object

READ_TIMEOUT_S = 30.0
"""Longest silence of a client that is sending its body."""


def read_json(request: Request, *, needs_media_type: bool = True) -> dict[str, Any]:
    """The request's body.

    Args:
        request: its body is read here.
        needs_media_type: whether the Content-Type must say JSON.

    Raises:
        MalformedBody: it is not a JSON object, or did not come whole.
        WrongMediaType: it is said to be something else.
        BodyTooLarge: it is longer than the application's `MAX_CONTENT_LENGTH`.
    """
    return read_raw_json(request, needs_media_type=needs_media_type)[1]


def read_raw_json(
    request: Request, *, needs_media_type: bool = True
) -> tuple[bytes, dict[str, Any]]:
    """The request's body as it came, and what it says; else like `read_json`."""
    if needs_media_type and not request.is_json:
        raise WrongMediaType("the header Content-Type must be application/json")
    raw = read_body(request)
    return raw, parse_object(raw)


def read_body(request: Request) -> bytes:
    """The request's body as it came; it can be read once.

    Raises:
        MalformedBody: it did not come whole, or not as HTTP frames it.
        BodyTooLarge: it is longer than the request's `max_content_length`.
    """
    limit, length = request.max_content_length, request.content_length
    if limit is not None and (length or 0) > limit:
        raise BodyTooLarge(f"the body is longer than {limit} bytes")
    if length is not None:
        body = _receive(request, length)
        if len(body) < length:
            raise MalformedBody(f"the body ended after {len(body)} of {length} bytes")
        return body
    # A byte more than is allowed shows that a body in chunks is too long.
    body = _receive(request, -1 if limit is None else limit + 1)
    if limit is not None and len(body) > limit:
        raise BodyTooLarge(f"the body is longer than {limit} bytes")
    return body


def _receive(request: Request, most: int) -> bytes:
    """The body, or its first so many bytes; fewer where the client sent no more."""
    try:
        with Connection(request.environ).read_timeout(READ_TIMEOUT_S):
            body: bytes = request.environ["wsgi.input"].read(most)
    except ParseException as error:
        raise MalformedBody(f"the body is not framed as HTTP has it: {error}") from None
    except TimeoutError:
        raise MalformedBody(f"the body did not go on for {READ_TIMEOUT_S:.0f} seconds") from None
    except OSError:
        # gunicorn's NoMoreData, of a body in chunks, is one too.
        raise MalformedBody("the body broke off before its end") from None
    return body
