"""Biases of single tokens, as every protocol has them."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields

from api.fields import Number, shown


class LogitBias(fields.Field[tuple[tuple[int, float], ...]]):
    """Numbers by token id, each at most `largest` away from 0 where that is given."""

    def __init__(self, *, largest: float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.largest = largest

    def _deserialize(
        self, value: Any, attr: Any, data: Any, **kwargs: Any
    ) -> tuple[tuple[int, float], ...]:
        if not isinstance(value, dict):
            raise ValidationError(
                f"must be an object from token ids to numbers, not {shown(value)}"
            )
        return tuple((_token_id(key), self._bias(key, each)) for key, each in value.items())

    def _bias(self, key: str, value: Any) -> float:
        bias = float(Number().deserialize(value) or 0.0)
        if self.largest is not None and abs(bias) > self.largest:
            allowed = f"from -{self.largest:g} to {self.largest:g}"
            raise ValidationError(f"the number for token {key} must be {allowed}")
        return bias


def _token_id(key: str) -> int:
    # A number has one form, so that an id comes once.
    is_number = key.isascii() and key.isdigit() and len(key) < 10
    if not is_number or str(int(key)) != key:
        raise ValidationError(f"{key[:40]!r} is no token id; ids are whole numbers from 0 on")
    return int(key)
