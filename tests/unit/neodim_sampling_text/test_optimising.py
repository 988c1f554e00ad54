"""Optimised prompts have no white space at their ends, and every control its characters."""

from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neodim_sampling.prompt_items import IdsItem, ImageItem, PromptItem, TextControl, TextItem
from neodim_sampling.text.optimising import optimised

IDS = IdsItem(ids=(1, 2))
IMAGE = ImageItem(picture=b"picture")
Mark: TypeAlias = tuple[str, tuple[float, ...]] | IdsItem
"""A character and the factors on it, or an item that is not text."""


def texts(*parts: str) -> tuple[TextItem, ...]:
    return tuple(TextItem(text=each) for each in parts)


def control(start: int, length: int, factor: float = 0.5) -> TextControl:
    return TextControl(start=start, length=length, factor=factor)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (
            (*texts(" Hello ", " world! "), IMAGE, IDS, *texts(" The ", " end ")),
            (*texts("Hello  world! "), IMAGE, IDS, *texts(" The  end")),
        ),
        ((IMAGE, *texts("A picture of ")), (IMAGE, *texts("A picture of"))),
        (texts("\n\t a b \n"), texts("a b")),
        ((IDS, *texts(" a "), IDS), (IDS, *texts(" a "), IDS)),
        (texts("  "), texts("")),
        ((IDS, IDS), (IDS, IDS)),
        ((), ()),
    ],
)
def test_neighbouring_texts_are_joined_and_the_ends_stripped(
    items: tuple[PromptItem, ...], expected: tuple[PromptItem, ...]
) -> None:
    assert optimised(items) == expected


def test_controls_move_with_their_characters_and_lose_what_is_cut_off() -> None:
    one = TextItem(text="  ab", controls=(control(0, 2), control(1, 2), control(3, 1)))
    other = TextItem(text="cd ", controls=(control(1, 2, 3.0), control(2, 1)))

    (found,) = optimised((one, other))

    assert found == TextItem(
        text="abcd", controls=(control(0, 1), control(1, 1), control(3, 1, 3.0))
    )


def test_whole_control_stays_a_whole_one() -> None:
    whole = TextControl(start=0, length=3, factor=0.5, is_complete=True)

    (found,) = optimised((TextItem(text=" ab", controls=(whole,)),))

    assert isinstance(found, TextItem)
    assert found.controls == (TextControl(start=0, length=2, factor=0.5, is_complete=True),)


@st.composite
def text_items(draw: st.DrawFn) -> TextItem:
    text = draw(st.text(st.sampled_from("ab \n"), max_size=5))
    controls = []
    for _ in range(draw(st.integers(0, 3)) if text else 0):
        start = draw(st.integers(0, len(text) - 1))
        length = draw(st.integers(1, len(text) - start))
        controls.append(control(start, length, draw(st.sampled_from([0.0, 0.5, 2.0]))))
    return TextItem(text=text, controls=tuple(controls))


def marks(items: tuple[PromptItem, ...]) -> list[Mark]:
    """All characters with the factors on them, in their order."""
    found: list[Mark] = []
    for item in items:
        if isinstance(item, IdsItem):
            found.append(item)
        if isinstance(item, TextItem):
            found += [
                (
                    character,
                    tuple(
                        each.factor
                        for each in item.controls
                        if each.start <= place < each.start + each.length
                    ),
                )
                for place, character in enumerate(item.text)
            ]
    return found


def is_space(mark: Mark) -> bool:
    return isinstance(mark, tuple) and mark[0].isspace()


@given(st.lists(text_items() | st.just(IDS), max_size=5).map(tuple))
def test_same_characters_are_under_the_same_controls_as_before(
    items: tuple[PromptItem, ...],
) -> None:
    expected = marks(items)
    while expected and is_space(expected[0]):
        del expected[0]
    while expected and is_space(expected[-1]):
        del expected[-1]

    assert marks(optimised(items)) == expected


@given(st.lists(text_items() | st.just(IDS), max_size=5).map(tuple))
def test_optimising_again_changes_nothing(items: tuple[PromptItem, ...]) -> None:
    once = optimised(items)

    assert optimised(once) == once
