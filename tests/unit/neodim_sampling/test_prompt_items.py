"""Items of a prompt that exist are valid: wrong controls are refused, naming what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompt_items import (
    AreaControl,
    AttentionParams,
    IdsItem,
    ImageItem,
    TextControl,
    TextItem,
    TokenControl,
)


def text(start: int = 0, length: int = 1, factor: float = 0.5) -> TextItem:
    control = TextControl(start=start, length=length, factor=factor)
    return TextItem(text="a😀cd", controls=(control,))


def ids(index: int = 0, factor: float = 0.5) -> IdsItem:
    return IdsItem(ids=(5, 6), controls=(TokenControl(index=index, factor=factor),))


def image(
    left: float = 0.0,
    top: float = 0.0,
    width: float = 1.0,
    height: float = 1.0,
    factor: float = 0.5,
) -> ImageItem:
    control = AreaControl(left=left, top=top, width=width, height=height, factor=factor)
    return ImageItem(picture=b"", controls=(control,))


@pytest.mark.parametrize("make", [text, ids, image])
@pytest.mark.parametrize("factor", [-0.1, -math.inf, math.inf, math.nan])
def test_factor_that_is_negative_or_no_number_is_refused(
    make: Callable[..., object], factor: float
) -> None:
    with pytest.raises(InvalidParams, match="prompt: the factor of a control must be at least 0"):
        make(factor=factor)


@pytest.mark.parametrize("make", [text, ids, image])
@pytest.mark.parametrize("factor", [0.0, 1.0, 1e300])
def test_any_other_factor_is_taken(make: Callable[..., object], factor: float) -> None:
    make(factor=factor)


@pytest.mark.parametrize(("start", "length"), [(-1, 2), (0, 0), (0, -1), (0, 5), (4, 1), (3, 2)])
def test_control_outside_its_text_is_refused(start: int, length: int) -> None:
    with pytest.raises(InvalidParams, match="is not within its text of 4 characters"):
        text(start, length)


@pytest.mark.parametrize(("start", "length"), [(0, 4), (3, 1), (0, 1)])
def test_control_counts_characters_not_bytes(start: int, length: int) -> None:
    text(start, length)


@pytest.mark.parametrize("index", [-1, 2])
def test_control_of_an_id_that_is_not_there_is_refused(index: int) -> None:
    with pytest.raises(InvalidParams, match=f"has the index {index}, and there are 2 ids"):
        ids(index)


@pytest.mark.parametrize(
    "area",
    [
        {"left": -0.1},
        {"top": -0.1},
        {"left": 0.5, "width": 0.6},
        {"top": 0.5, "height": 0.6},
        {"width": 0.0},
        {"height": -0.2},
        {"left": math.nan},
        {"height": math.nan},
    ],
)
def test_area_outside_its_picture_is_refused(area: dict[str, float]) -> None:
    with pytest.raises(InvalidParams, match="lies between 0 and 1 and is not empty"):
        image(**area)


def test_area_up_to_the_edge_may_be_rounded() -> None:
    image(left=0.7, width=0.1 + 0.2)


@pytest.mark.parametrize("threshold", [-1.1, 1.1, math.nan, math.inf])
def test_threshold_that_is_no_cosine_is_refused(threshold: float) -> None:
    with pytest.raises(InvalidParams, match="contextual_control_threshold: must be from -1 to 1"):
        AttentionParams(threshold=threshold)


@pytest.mark.parametrize("threshold", [None, -1.0, 0.0, 1.0])
def test_threshold_may_be_any_cosine_or_none(threshold: float | None) -> None:
    assert AttentionParams(threshold=threshold).threshold == threshold
