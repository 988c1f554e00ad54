from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizer_families import FAMILIES, load_codec

from neodim_sampling.parameters import WarperParams
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.decoder import UNFINISHED
from neodim_sampling.text.exclusions import ExcludedTexts

CONTEXTS = ["", "The old cat", "x\n"]
PARTS = ["the cat", " the", "house", "€", "😀", "日本", "\n", " ", "é", "a", "cat"]


def make_row(codec: TextCodec) -> SamplingRow:
    settings = RowSettings(
        warpers=WarperParams(), constraints=TokenConstraints(), n_vocab=codec.n_vocab
    )
    return SamplingRow(settings, [], 0, 0)


def ruled_out(excluded: ExcludedTexts, codec: TextCodec, tokens: list[int]) -> list[int]:
    row = make_row(codec)
    assert excluded.rule_out(row, tokens) == bool(row.ruled_out)
    return row.ruled_out


def watching(
    codec: TextCodec, text: str, generated: list[int] | None = None, context: str = "x"
) -> ExcludedTexts:
    excluded = ExcludedTexts(codec, [text], codec.encode(context))
    for token in generated or []:
        excluded.push(token)
    return excluded


def text_behind(codec: TextCodec, context: list[int], generated: list[int]) -> str:
    return codec.decode([*context, *generated])[len(codec.decode(context)) :]


def test_token_that_has_an_excluded_text_in_it_is_ruled_out() -> None:
    codec = load_codec("gpt2")
    he, cat = codec.encode("the cat")[1:]

    assert ruled_out(watching(codec, "a"), codec, [he, cat]) == [cat]


def test_token_that_completes_an_excluded_text_is_ruled_out_behind_its_beginning_only() -> None:
    codec = load_codec("gpt2")
    t, he, cat = codec.encode("the cat")

    found = [
        ruled_out(watching(codec, "the c", made), codec, [t, cat]) for made in ([he], [t], [t, he])
    ]

    assert found == [[], [], [cat]]


def test_text_that_begins_in_the_prompt_does_not_count() -> None:
    codec = load_codec("gpt2")
    t, he, cat = codec.encode("the cat")

    assert ruled_out(watching(codec, "the", context="t"), codec, [he, cat]) == []
    assert ruled_out(watching(codec, "the", [t], context="t"), codec, [he, cat]) == [he]


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_character_counts_with_its_last_byte(family: str) -> None:
    codec = load_codec(family)
    first, second, third = codec.encode("€")[-3:]

    found = [
        ruled_out(watching(codec, "€", made), codec, [token])
        for made, token in (([], first), ([first], second), ([first, second], third))
    ]

    assert found == [[], [], [third]]


def test_broken_characters_can_be_excluded_and_unfinished_ones_may_go_on() -> None:
    codec = load_codec("gpt2")
    first, second, third = codec.encode("€")
    (cat,) = codec.encode(" cat")

    found = ruled_out(watching(codec, UNFINISHED, [first, second]), codec, [third, cat])

    assert found == [cat]


def test_special_token_is_never_ruled_out() -> None:
    codec = load_codec("gpt2")
    (end,) = codec.encode("<|endoftext|>")

    assert ruled_out(watching(codec, "end"), codec, [end]) == []


def test_special_token_between_the_parts_of_a_text_does_not_hide_it() -> None:
    codec = load_codec("gpt2")
    t, he, _ = codec.encode("the cat")
    (end,) = codec.encode("<|endoftext|>")

    assert ruled_out(watching(codec, "the", [t, end]), codec, [he]) == [he]


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_exactly_those_tokens_are_ruled_out_with_which_a_text_would_be_there(
    family: str, data: st.DataObject
) -> None:
    codec = load_codec(family)
    context = codec.encode(data.draw(st.sampled_from(CONTEXTS)))
    texts = data.draw(
        st.lists(st.sampled_from([*PARTS, "e", "ca", "本日"]), min_size=1, max_size=2)
    )
    pieces = [codec.encode_bare(part) for part in PARTS] + [[each] for each in range(3, 400, 7)]
    wanted = data.draw(st.lists(st.sampled_from(pieces), max_size=30))
    excluded = ExcludedTexts(codec, texts, context)
    generated: list[int] = []

    for token in chain(*wanted):
        text = text_behind(codec, context, [*generated, token]).rstrip(UNFINISHED)
        is_there = token not in codec.ignored_ids and any(each in text for each in texts)
        assert ruled_out(excluded, codec, [token]) == [token] * is_there
        if not is_there:
            excluded.push(token)
            generated.append(token)
