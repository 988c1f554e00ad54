"""Which part of a picture each of its tokens stands for, and what controls make of that token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neodim_sampling.prompt_items import AreaControl, combined

NEGLIGIBLE = 1e-6
"""Share of a tile below which it counts as not covered: edges that meet differ by rounding."""


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of a picture; all four are shares of the whole picture's sides, 0 ... 1."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tokens that a picture becomes.

    Args:
        token: the id that is written for each of them.
        areas: what each of them stands for, in their order.
    """

    token: int
    areas: tuple[Area, ...]


def cut_in_tiles(square: Area, per_side: int) -> tuple[Area, ...]:
    """Equal tiles of an area, row by row.

    Args:
        square: the part of a picture that a model sees.
        per_side: tiles in each row, and in each column; >= 1.
    """
    width, height = square.width / per_side, square.height / per_side
    return tuple(
        Area(square.left + column * width, square.top + row * height, width, height)
        for row in range(per_side)
        for column in range(per_side)
    )


def factor_of_area(area: Area, controls: Sequence[AreaControl]) -> float:
    """What all controls together make of the attention to an area.

    One that covers a part of the area counts in proportion, unless it says otherwise.
    """
    factor = 1.0
    for control in controls:
        share = _covered(area, control)
        if share < NEGLIGIBLE:
            continue
        if control.is_complete or share > 1 - NEGLIGIBLE:
            share = 1.0
        factor = combined(factor, 1 + (control.factor - 1) * share)
    return factor


def is_reached(area: Area, controls: Sequence[AreaControl]) -> bool:
    """Whether any control is on an area."""
    return any(_covered(area, each) >= NEGLIGIBLE for each in controls)


def _covered(area: Area, control: AreaControl) -> float:
    """The share of an area that a control covers."""
    width = _shared(area.left, area.width, control.left, control.width)
    height = _shared(area.top, area.height, control.top, control.height)
    return width * height / (area.width * area.height)


def _shared(start: float, length: float, other_start: float, other_length: float) -> float:
    """The length that two stretches of a side have in common."""
    end = min(start + length, other_start + other_length)
    return max(0.0, end - max(start, other_start))
