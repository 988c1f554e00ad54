"""Reads forms with files (multipart/form-data, RFC 7578), for those who send pictures that way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from flask import Request
from marshmallow import Schema
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import MultiPartParser

from api.fields import Number, Whole, shown_name
from api.json_body import read_body
from api.picture_field import PictureFile
from api.rejections import MalformedBody, WrongMediaType

MAX_PARTS = 64
MEDIA_TYPE = "multipart/form-data"
_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?", re.ASCII)


def read_raw_form(request: Request, schema: Schema) -> tuple[bytes, dict[str, Any]]:
    """A form as it came, and its fields as a JSON object would have them; pictures are bytes.

    Args:
        request: its body is read here.
        schema: says what is a number and what a picture: a form has only text and files.

    Raises:
        WrongMediaType: it is no form with files.
        MalformedBody: it is not framed as one, or a field is there twice or is no text.
        BodyTooLarge: it is longer than the request's `max_content_length`.
    """
    boundary = request.mimetype_params.get("boundary")
    if request.mimetype != MEDIA_TYPE or not boundary:
        raise WrongMediaType(f"the Content-Type must be {MEDIA_TYPE}, with a boundary")
    raw = read_body(request)
    parts = _parse(raw, boundary)
    return raw, {name: _value(name, each, schema.fields.get(name)) for name, each in parts.items()}


def _parse(body: bytes, boundary: str) -> Mapping[str, str | bytes]:
    """The parts by name: text, or bytes where a part is a file."""
    parser = MultiPartParser(_in_memory, max_form_memory_size=None, max_form_parts=MAX_PARTS)
    try:
        texts, files = parser.parse(BytesIO(body), boundary.encode("latin-1"), len(body))
    except RequestEntityTooLarge:
        raise MalformedBody(f"the form has more than {MAX_PARTS} parts") from None
    except ValueError as error:
        raise MalformedBody(f"the body is no form: {error}") from None
    parts: dict[str, str | bytes] = {}
    both = [*texts.items(multi=True), *((name, each.read()) for name, each in files.items(True))]
    for name, part in both:
        # werkzeug puts U+FFFD where a text is not in UTF-8.
        if isinstance(part, str) and "\ufffd" in part and "\ufffd".encode() not in body:
            raise MalformedBody(f"{shown_name(name)}: is not text in UTF-8")
        # OpenAI's client calls pictures that it was given in a list so.
        name = name.removesuffix("[]")
        if name in parts:
            raise MalformedBody(f"{shown_name(name)}: is there more than once")
        parts[name] = part
    return parts


def _in_memory(*_: Any, **__: Any) -> IO[bytes]:
    """Where a file's bytes go while they are parsed: they are in memory already."""
    return BytesIO()


def _value(name: str, part: str | bytes, field: Any) -> Any:
    """A part as the field wants it; what it cannot be is left for the field to refuse."""
    if isinstance(field, PictureFile):
        return part
    try:
        text = part if isinstance(part, str) else part.decode()
    except UnicodeDecodeError:
        raise MalformedBody(f"{shown_name(name)}: is not text in UTF-8") from None
    if isinstance(field, Whole) and _WHOLE.fullmatch(text):
        return int(text)
    if isinstance(field, Number) and _NUMBER.fullmatch(text):
        return float(text)
    return text
