"""Checks that a number of a request lies where it may."""

from __future__ import annotations

import math

from neodim_sampling.errors import InvalidParams


def check_range(
    field: str,
    value: float | None,
    allowed: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> None:
    """Refuse a number that is not finite or lies outside its range.

    Args:
        field: whose it is, as errors name it.
        value: None = off, which is always allowed.
        allowed: the range in words.
        low: least value.
        high: greatest value.
        low_open: whether `low` itself is not allowed.
        high_open: whether `high` itself is not allowed.

    Raises:
        InvalidParams: it is.
    """
    if value is None:
        return
    is_low = value < low or (low_open and value == low)
    is_high = value > high or (high_open and value == high)
    # Whole numbers are finite, also those that no float can hold.
    if is_low or is_high or not (isinstance(value, int) or math.isfinite(value)):
        raise InvalidParams(field, f"must be {allowed}, not {value}")
