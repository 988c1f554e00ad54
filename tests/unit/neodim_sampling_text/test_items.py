"""Prompts of items become tokens one by one, and controls factors of the tokens they cover."""

from __future__ import annotations

from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizer_families import ALL_FAMILIES, BYTE_LEVEL, load_codec

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompt_items import (
    LARGEST_FACTOR,
    IdsItem,
    PromptItem,
    TextControl,
    TextItem,
    TokenControl,
)
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.items import ReadItem, ReadPrompt, read_continuation, read_items
from neodim_sampling.text.words import spelling_as_written

INSTRUCTION = "### Instruction:\nAnswer the"
LETTERS = [(place, 1) for place in range(16)]
"""Start and length of the small vocabularies' tokens up to the newline."""
BY_LETTERS = [*LETTERS, (16, 1), (17, 1), (18, 1), (19, 1), (20, 1), (21, 2), (24, 3)]
SPANS = {
    **dict.fromkeys((*BYTE_LEVEL, "opt"), BY_LETTERS),
    # A text begins with a space of its own, which stands with the first character.
    "llama": [(0, 1), *BY_LETTERS],
    # What is not in the vocabulary is one unknown token, and so are runs of it.
    "xglm": [
        (0, 1),
        (0, 3),
        *LETTERS[3:],
        (16, 1),
        # Behind a newline as at the beginning.
        (17, 1),
        *[(place, 1) for place in range(17, 23)],
        (24, 3),
    ],
}


def read(codec: TextCodec, *items: PromptItem) -> ReadPrompt:
    return read_items(codec, items, ())


def text_item(text: str, *controls: tuple[int, int, float], is_complete: bool = False) -> TextItem:
    """A text under controls of start, length and factor."""
    made = tuple(
        TextControl(start=start, length=length, factor=factor, is_complete=is_complete)
        for start, length, factor in controls
    )
    return TextItem(text=text, controls=made)


def read_text(family: str, item: TextItem) -> ReadItem:
    return read(load_codec(family), item).items[0]


@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_spans_leave_out_the_spaces_before_a_word(family: str) -> None:
    found = read_text(family, TextItem(text=INSTRUCTION))

    assert [(start, stop - start) for start, stop in found.spans] == SPANS[family]


@pytest.mark.model
def test_spans_of_a_real_tokenizer_are_the_words(smollm2: TextCodec) -> None:
    (found,) = read(smollm2, TextItem(text=INSTRUCTION)).items

    assert found.spans == ((0, 3), (4, 15), (15, 16), (16, 17), (17, 23), (24, 27))


@pytest.mark.parametrize("family", BYTE_LEVEL)
def test_token_of_spaces_only_keeps_its_span(family: str) -> None:
    assert read_text(family, TextItem(text="a   cat")).spans[1:] == ((1, 2), (2, 3), (4, 7))


@pytest.mark.parametrize("family", ALL_FAMILIES)
@pytest.mark.parametrize("start", [2, 1])
def test_word_is_covered_with_or_without_its_space(family: str, start: int) -> None:
    found = read_text(family, text_item("a cat", (start, 5 - start, 0.25)))

    assert found.factors == {len(found.ids) - 1: 0.25}


@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_control_of_a_space_before_a_word_reaches_nothing(family: str) -> None:
    assert read_text(family, text_item("a cat", (1, 1, 0.25))).factors == {}


@pytest.mark.parametrize("family", ALL_FAMILIES)
@pytest.mark.parametrize("factor", [0.0, 0.4, 2.0])
def test_part_of_a_token_has_its_share_of_the_factor(family: str, factor: float) -> None:
    found = read_text(family, text_item("a cat", (2, 2, factor)))

    last = len(found.ids) - 1
    assert found.factors == {last: pytest.approx(1 + (factor - 1) * 2 / 3)}


@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_complete_control_gives_a_token_that_it_touches_the_whole_factor(family: str) -> None:
    found = read_text(family, text_item("a cat", (4, 1, 0.4), is_complete=True))

    assert found.factors == {len(found.ids) - 1: 0.4}


@pytest.mark.parametrize("family", [*BYTE_LEVEL, "llama", "opt"])
def test_tokens_that_spell_one_character_share_its_control(family: str) -> None:
    found = read_text(family, text_item("a😀b", (1, 1, 0.5)))

    last = len(found.ids) - 1
    assert found.factors == dict.fromkeys(range(last - 4, last), 0.5)


@given(
    family=st.sampled_from(ALL_FAMILIES),
    controls=st.permutations([(0, 4, 0.5), (2, 3, 5.0), (2, 1, 0.25), (3, 2, 0.5)]),
)
def test_controls_on_one_token_multiply_in_any_order(
    family: str, controls: list[tuple[int, int, float]]
) -> None:
    found = read_text(family, text_item("a cat", *controls))

    shares = (1 - 0.5 * 2 / 3) * 5.0 * (1 - 0.75 / 3) * (1 - 0.5 * 2 / 3)
    assert found.factors[len(found.ids) - 1] == pytest.approx(shares)
    assert found.factors[len(found.ids) - 2] == pytest.approx(0.5)


def test_factors_that_cancel_out_still_keep_their_tokens_as_they_are() -> None:
    found = read_text("gpt2", text_item("cat a", (0, 3, 0.5), (0, 3, 2.0), (0, 1, 1.0)))

    assert set(found.factors.values()) == {1.0}
    assert len(found.factors) == len(load_codec("gpt2").encode_bare("cat"))


@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_items_are_read_one_by_one_without_a_start_token(family: str) -> None:
    codec = load_codec(family)
    ids = IdsItem(
        ids=(7, 8, 9),
        controls=(
            TokenControl(index=1, factor=0.5),
            TokenControl(index=1, factor=0.5),
            TokenControl(index=2, factor=1.0),
        ),
    )

    found = read(codec, TextItem(text="a"), ids, text_item("a cat", (2, 3, 3.0)))

    one, other = codec.encode_bare("a"), codec.encode_bare("a cat")
    assert found.ids == (*one, 7, 8, 9, *other)
    assert [each.first for each in found.items] == [0, len(one), len(one) + 3]
    assert found.factors == {len(one) + 1: 0.25, len(one) + 2: 1.0, len(found.ids) - 1: 3.0}


@pytest.mark.parametrize(
    ("family", "name"), [("gpt2", "<|endoftext|>"), ("llama", "</s>"), ("opt", "<pad>")]
)
def test_special_token_written_out_is_one_token(family: str, name: str) -> None:
    codec = load_codec(family)

    found = read_text(family, TextItem(text=f"a{name}"))

    assert codec.alone(found.ids[-1]) == name
    assert found.spans[-1] == (1, 1 + len(name))


@pytest.mark.parametrize("family", ALL_FAMILIES)
@pytest.mark.parametrize("items", [(), (TextItem(text=""),), (IdsItem(ids=()), TextItem(text=""))])
def test_empty_prompt_is_the_token_that_begins_a_text(
    family: str, items: tuple[PromptItem, ...]
) -> None:
    codec = load_codec(family)

    found = read(codec, *items)

    assert found.ids == found.start_ids == (codec.start_id,)
    assert len(found.items) == len(items)


def test_empty_prompt_is_a_token_that_ends_a_text_where_none_begins_one() -> None:
    codec = copy(load_codec("gpt2"))
    codec.start_id = None

    assert read_items(codec, (), {9, 4}).ids == (4,)
    with pytest.raises(InvalidParams, match="prompt: must not be empty"):
        read_items(codec, (), ())


@pytest.mark.parametrize("token", [-1, 511])
def test_ids_outside_the_vocabulary_are_refused(token: int) -> None:
    with pytest.raises(InvalidParams, match="prompt: token ids are from 0 to 510"):
        read(load_codec("gpt2"), IdsItem(ids=(1, token)))


@pytest.mark.parametrize("text", ["river", " river is", "\u65e5\u672c cat", "a\nb c", " "])
@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_text_that_goes_on_is_read_without_a_space_of_the_tokenizers(
    family: str, text: str
) -> None:
    codec = load_codec(family)

    found = read_continuation(codec, text)

    assert list(found.ids) == spelling_as_written(codec, text)
    if codec.decode([*codec.encode("cat"), *found.ids]) == "cat" + text:
        covered = {n for start, stop in found.spans for n in range(start, stop)}
        assert covered >= {n for n, each in enumerate(text) if each != " "}
    assert all(0 <= start < stop <= len(text) for start, stop in found.spans)


@pytest.mark.parametrize(
    ("family", "spans"),
    [
        ("llama", [(0, 1)] * 3 + [(1, 2)] * 3 + [(3, 6)]),
        ("gpt2", [(0, 1)] * 3 + [(1, 2)] * 3 + [(3, 6)]),
    ],
)
def test_tokens_of_one_character_of_a_text_that_goes_on_share_it(
    family: str, spans: list[tuple[int, int]]
) -> None:
    assert read_continuation(load_codec(family), "\u65e5\u672c cat").spans == tuple(spans)


@pytest.mark.parametrize(
    ("factors", "expected"),
    [((1e200, 1e200, 0.0), 0.0), ((1e308, 1e308), LARGEST_FACTOR), ((1e308, 1e-10), 1e20)],
)
def test_factors_whose_product_no_number_can_hold_count_as_the_largest(
    factors: tuple[float, ...], expected: float
) -> None:
    codec = load_codec("gpt2")
    controls = tuple(TokenControl(index=0, factor=each) for each in factors)

    of_ids = read(codec, IdsItem(ids=(5,), controls=controls)).factors
    of_text = read_text("gpt2", text_item("cat", *((0, 3, each) for each in factors))).factors

    assert of_ids == {0: pytest.approx(expected)}
    assert list(of_text.values()) == [pytest.approx(expected)] * len(of_text)
