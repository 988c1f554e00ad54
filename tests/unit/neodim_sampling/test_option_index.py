"""Tests of which tokens go on with an option, against all texts that options can make."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from neodim_sampling.option_index import OptionIndex

option_lists = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=3).map(tuple), min_size=1, max_size=3
)


def whole_texts(options: list[tuple[int, ...]], n_least: int, n_most: int) -> set[tuple[int, ...]]:
    """All texts that may end: options one behind the other, as few of them as are long enough."""
    found: set[tuple[int, ...]] = set()
    for n in range(1, n_most + 1):
        for parts in product(options, repeat=n):
            text = tuple(token for part in parts for token in part)
            n_before = len(text) - len(parts[-1])
            if len(text) <= n_most and (n == 1 or n_before < n_least):
                found.add(text)
    return found


@given(option_lists, st.integers(0, 3), st.lists(st.integers(0, 2), max_size=4))
def test_what_may_come_is_what_some_whole_text_has_there(
    options: list[tuple[int, ...]], n_least: int, text: list[int]
):
    index = OptionIndex(options, n_least)
    for token in text:
        index.append(token)

    ids, may_end = index.continuations()

    # Long enough for any option that begins at the text's end, or behind it.
    wholes = whole_texts(options, n_least, n_most=len(text) + 5)
    begun = [whole for whole in wholes if whole[: len(text)] == tuple(text)]
    assert set(ids) == {whole[len(text)] for whole in begun if len(whole) > len(text)}
    assert may_end == (tuple(text) in wholes and len(text) >= n_least)


@given(option_lists, st.integers(0, 3), st.lists(st.integers(0, 2), max_size=4))
def test_resumed_text_is_where_a_grown_one_is(
    options: list[tuple[int, ...]], n_least: int, text: list[int]
):
    grown = OptionIndex(options, n_least)
    for token in text:
        grown.append(token)

    resumed = OptionIndex(options, n_least, text)

    assert resumed.continuations() == grown.continuations()
