"""Parses JSON objects, strictly: what two parsers could read differently is refused."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import dataclass
from typing import Any

from api.fields import shown_name
from api.rejections import MalformedBody

MAX_DEPTH = 64
"""Lists and objects within each other."""

# Strings are matched to their end, or to that of the text, so that no character is read twice.
_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|([\[{])|([\]}])', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF_PAIR = "half of a surrogate pair, which is no character; allowed: whole characters"
_FINITE = "allowed: finite numbers in double precision"


def parse_object(body: bytes) -> dict[str, Any]:
    """A JSON text that is an object.

    Refused beyond what JSON forbids: duplicate names, numbers outside of double precision,
    characters that are half of a pair, and more than `MAX_DEPTH` levels.

    Raises:
        MalformedBody: it is anything else, with the reason and the field that has it.
    """
    if not body.strip():
        raise MalformedBody("the body is empty; a JSON object is expected")
    try:
        # A byte order mark may be ignored (RFC 8259, section 8.1).
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedBody(f"the body is not UTF-8: bad byte at {error.start}") from None
    _check_depth(text)
    numbers = _Numbers()
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=numbers.whole,
            parse_float=numbers.fraction,
            parse_constant=numbers.constant,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise MalformedBody(f"the body is not JSON: {error.msg} at {place}") from None
    if not isinstance(value, dict):
        raise MalformedBody("the body must be a JSON object")
    # Decoded UTF-8 has no surrogates: only escapes can have brought one in.
    if numbers.has_unusable or "\\u" in text:
        _check_value("body", value)
    return value


@dataclass(frozen=True, slots=True)
class _Unusable:
    """Stands for a number until it is known which field has it."""

    problem: str


class _Numbers:
    """Makes numbers of their digits."""

    def __init__(self) -> None:
        self.has_unusable = False

    def whole(self, digits: str) -> int | _Unusable:
        try:
            return int(digits)
        except ValueError:
            most = sys.get_int_max_str_digits()
            return self._unusable(f"the number has too many digits; allowed: at most {most}")

    def fraction(self, digits: str) -> float | _Unusable:
        number = float(digits)
        if math.isfinite(number):
            return number
        return self._unusable(f"the number {digits[:40]} is too large; {_FINITE}")

    def constant(self, name: str) -> _Unusable:
        return self._unusable(f"{name} is not a JSON number; {_FINITE}")

    def _unusable(self, problem: str) -> _Unusable:
        self.has_unusable = True
        return _Unusable(problem)


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
                raise MalformedBody(f"{shown_name(name)}: is there more than once")
            seen.add(name)
    return found


def _check_value(name: str, value: Any) -> None:
    """Refuse what no field can have, by the innermost name that it stands under."""
    if isinstance(value, _Unusable):
        raise MalformedBody(f"{shown_name(name)}: {value.problem}")
    if isinstance(value, str) and _SURROGATE.search(value):
        raise MalformedBody(f"{shown_name(name)}: has {_HALF_PAIR}")
    if isinstance(value, list):
        for each in value:
            _check_value(name, each)
    if isinstance(value, dict):
        for key, each in value.items():
            if _SURROGATE.search(key):
                raise MalformedBody(f"{shown_name(key)}: the name has {_HALF_PAIR}")
            _check_value(key, each)
