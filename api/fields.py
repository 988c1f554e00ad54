"""Strict field types of every request: nothing is turned into what the client did not write.

Integral floats count as integers and integers as floats, because JSON does not tell them apart.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from marshmallow import ValidationError, fields

MAX_COUNT = 2**31 - 1
"""Largest number of anything that can be counted here."""

MAX_WORDS = 10_000
MAX_ORDER = 100
"""Most words of one list, and most warpers of an order."""

REQUIRED: dict[str, str | list[Any] | dict[Any, Any]] = {
    "required": "is required",
    "null": "must not be null",
}


def says(text: str, **limits: int) -> dict[str, Any]:
    """What the documentation says of a field; limits are checked by the parameters."""
    return {"description": text, **limits}


def shown(value: Any, limit: int = 40) -> str:
    """A value as an error text shows it: short, and as JSON writes it."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, str) and len(value) > limit:
        value = value[:limit] + "..."
    if isinstance(value, int) and abs(value) >= 10**limit:
        return "so large a number"
    return json.dumps(value, ensure_ascii=False)


def shown_name(name: str) -> str:
    """A field's name as an error text begins with it: short, and visible if it is blank."""
    short = name[:60].encode(errors="replace").decode()
    return short if short.strip() else json.dumps(short)


class Whole(fields.Integer):
    """An integer from `low` to `high`; by default, whatever can be a count."""

    default_error_messages = REQUIRED

    def __init__(self, *, low: int = -MAX_COUNT - 1, high: int = MAX_COUNT, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.low = low
        self.high = high
        self.metadata = {"minimum": low, "maximum": high, **self.metadata}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValidationError(f"must be an integer, not {shown(value)}")
        if value < self.low:
            raise ValidationError(f"must be at least {self.low}, not {shown(value)}")
        if value > self.high:
            raise ValidationError(f"must be at most {self.high}, not {shown(value)}")
        return value


class Number(fields.Float):
    """A finite number, from `low` to `high` where they are given."""

    default_error_messages = REQUIRED

    def __init__(
        self, *, low: float | None = None, high: float | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.low = low
        self.high = high
        limits = {"minimum": low, "maximum": high}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        self.metadata = {**given, **self.metadata}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValidationError(f"must be a number, not {shown(value)}")
        if self.low is not None and value < self.low:
            raise ValidationError(f"must be at least {self.low}, not {shown(value)}")
        if self.high is not None and value > self.high:
            raise ValidationError(f"must be at most {self.high}, not {shown(value)}")
        try:
            return float(value)
        except OverflowError:
            raise ValidationError(
                f"must be a number in double precision, not {shown(value)}"
            ) from None


class Flag(fields.Boolean):
    """True or false."""

    default_error_messages = REQUIRED

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError(f"must be true or false, not {shown(value)}")
        return value


class Text(fields.String):
    """A string, of at most so many characters if `max_length` is given."""

    default_error_messages = REQUIRED

    def __init__(self, *, max_length: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_length = max_length
        if max_length is not None:
            self.metadata = {"maxLength": max_length, **self.metadata}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError(f"must be a string, not {shown(value)}")
        if self.max_length is not None and len(value) > self.max_length:
            raise ValidationError(f"must have at most {self.max_length} characters")
        return value


class Choice(fields.String):
    """One of an enumeration's values; its member's name, in capitals, means the same."""

    default_error_messages = REQUIRED

    def __init__(self, choices: type[StrEnum], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.choices = choices
        self.metadata = {"enum": [each.value for each in choices], **self.metadata}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> StrEnum:
        for each in self.choices:
            if value in (each.value, each.name):
                return each
        allowed = ", ".join(json.dumps(each.value) for each in self.choices)
        raise ValidationError(f"must be one of {allowed}, not {shown(value)}")


class Texts(fields.List[str]):
    """A list of at most `most` strings."""

    default_error_messages = REQUIRED

    def __init__(self, *, most: int, **kwargs: Any) -> None:
        super().__init__(Text(), **kwargs)
        self.most = most
        self.metadata = {"maxItems": most, **self.metadata}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[str | None]:
        if not isinstance(value, list):
            raise ValidationError(f"must be a list of strings, not {shown(value)}")
        if len(value) > self.most:
            raise ValidationError(f"must have at most {self.most} entries, not {len(value)}")
        for n, each in enumerate(value):
            if not isinstance(each, str):
                raise ValidationError(f"must be a list of strings, but entry {n} is {shown(each)}")
        return value


class Object(fields.Dict):
    """A JSON object, read by somebody else."""

    default_error_messages = REQUIRED

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError(f"must be an object, not {shown(value)}")
        return value
