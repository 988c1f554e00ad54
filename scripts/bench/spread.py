"""Statistics of a few measurements: spread, percentiles, ratios round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """The lowest, middle and highest of some values."""

    low: float
    median: float
    high: float

    def columns(self, name: str) -> dict[str, float]:
        """As three cells of a table's row."""
        return {f"{name} min": self.low, f"{name} median": self.median, f"{name} max": self.high}


def spread_of(values: Sequence[float]) -> Spread:
    """The spread of some values.

    Raises:
        ValueError: there are none.
    """
    if not values:
        raise ValueError("nothing was measured")
    return Spread(min(values), median(values), max(values))


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` of all values do not exceed, between neighbours in proportion.

    Raises:
        ValueError: there are no values, or the percentage is none.
    """
    if not values or not 0 <= percent <= 100:
        raise ValueError(f"there is no percentile {percent} of {len(values)} values")
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def ratios(values: Sequence[float], base: Sequence[float]) -> list[float]:
    """Each round's value in units of the same round's base.

    Raises:
        ValueError: they are not of the same rounds.
    """
    return [value / unit for value, unit in zip(values, base, strict=True)]
