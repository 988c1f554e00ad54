"""Reads JSON bodies, strictly: what two parsers could read differently is refused.

The only reader of request bodies, for every protocol.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from flask import Request
from gunicorn.http.errors import ParseException
from werkzeug.wsgi import get_input_stream

from api.connection import Connection
from api.rejections import BodyTooLarge, MalformedBody, WrongMediaType

MAX_DEPTH = 64
"""Lists and objects within each other."""

READ_TIMEOUT_S = 30.0
"""Longest silence of a client that is sending its body."""

# Strings are matched to their end, or to that of the text, so that no character is read twice.
_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|([\[{])|([\]}])', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json(request: Request, *, needs_media_type: bool = True) -> dict[str, Any]:
    """The request's body.

    Args:
        request: its body is read here.
        needs_media_type: whether the Content-Type must say JSON.

    Raises:
        MalformedBody: it is not a JSON object.
        WrongMediaType: it is said to be something else.
        BodyTooLarge: it is longer than the application's `MAX_CONTENT_LENGTH`.
    """
    if needs_media_type and not request.is_json:
        raise WrongMediaType("the Content-Type must be application/json")
    return parse_object(_read(request))


def parse_object(body: bytes) -> dict[str, Any]:
    """A JSON text that is an object.

    Refused beyond what JSON forbids: duplicate names, numbers outside of double precision,
    characters that are half of a pair, and more than `MAX_DEPTH` levels.

    Raises:
        MalformedBody: it is anything else, with the reason.
    """
    if not body.strip():
        raise MalformedBody("the body is empty; a JSON object is expected")
    try:
        # A byte order mark may be ignored (RFC 8259, section 8.1).
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedBody(f"the body is not UTF-8: bad byte at {error.start}") from None
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise MalformedBody(f"the body is not JSON: {error.msg} at {place}") from None
    except ValueError:
        # Python converts no integer of more than 4,300 digits.
        raise MalformedBody("a number has too many digits") from None
    if not isinstance(value, dict):
        raise MalformedBody("the body must be a JSON object")
    # Decoded UTF-8 has no surrogates: only escapes can have brought one in.
    if "\\u" in text and any(_SURROGATE.search(each) for each in _strings(value)):
        raise MalformedBody("the body has half of a surrogate pair, which is no character")
    return value


def _read(request: Request) -> bytes:
    limit = request.max_content_length
    if limit is not None and (request.content_length or 0) > limit:
        raise BodyTooLarge(f"the body is longer than {limit} bytes")
    # Werkzeug 3.1 cuts a chunked body at its limit without a word: one byte more shows it.
    most = None if limit is None else limit + 1
    try:
        with Connection(request.environ).read_timeout(READ_TIMEOUT_S):
            body: bytes = get_input_stream(request.environ, max_content_length=most).read()
    except ParseException as error:
        raise MalformedBody(f"the body is not framed as HTTP has it: {error}") from None
    if limit is not None and len(body) > limit:
        raise BodyTooLarge(f"the body is longer than {limit} bytes")
    return body


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for found in _STRUCTURE.finditer(text):
        depth += (found[1] is not None) - (found[2] is not None)
        if depth > MAX_DEPTH:
            raise MalformedBody(f"the body is nested deeper than {MAX_DEPTH} levels")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                shown = name[:60].encode(errors="replace").decode()
                raise MalformedBody(f"{shown}: is there more than once")
            seen.add(name)
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise MalformedBody(f"the number {digits[:40]} is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedBody(f"{name} is not a JSON number")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
