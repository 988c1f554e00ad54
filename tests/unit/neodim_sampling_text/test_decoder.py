from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizer_families import FAMILIES, load_codec

from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.decoder import MAX_RUN_TOKENS, IncrementalDecoder

TEXTS = ["Hello\n world", "😀🎉 日本", "  two  spaces\n\n", "naïve — “é”", "\nold cat", "x\n"]


def stream(codec: TextCodec, context: list[int], generated: list[int]) -> tuple[list[str], str]:
    """Stable text after each token, and the final text."""
    decoder = IncrementalDecoder(codec, context)
    stable = []
    for token in generated:
        decoder.push(token)
        stable.append(decoder.stable_text)
    return stable, decoder.final_text()


def text_behind(codec: TextCodec, context: list[int], generated: list[int]) -> str:
    return codec.decode([*context, *generated])[len(codec.decode(context)) :]


def assert_only_grows(stable: list[str], final: str) -> None:
    for shorter, longer in pairwise([*stable, final]):
        assert longer.startswith(shorter)


def token_ids(family: str) -> st.SearchStrategy[list[int]]:
    codec = load_codec(family)
    pieces = [[each] for each in range(codec.n_vocab)]
    pieces += [codec.encode_bare(text) for text in TEXTS]
    return st.lists(st.sampled_from(pieces), max_size=60).map(lambda parts: list(chain(*parts)))


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_final_text_is_that_of_the_whole_without_the_context(
    family: str, data: st.DataObject
) -> None:
    codec = load_codec(family)
    context = codec.encode(data.draw(st.sampled_from(["", " ", "The cat", "日本", "x\n"])))
    generated = data.draw(token_ids(family))

    stable, final = stream(codec, context, generated)

    assert final == text_behind(codec, context, generated)
    assert_only_grows(stable, final)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_repeats", [1, 30])
def test_text_comes_back_as_the_whole_text_does(family: str, n_repeats: int) -> None:
    codec = load_codec(family)
    context = codec.encode("The cat")
    generated = codec.encode_bare("".join(TEXTS) * n_repeats)

    stable, final = stream(codec, context, generated)

    assert final == text_behind(codec, context, generated)
    assert_only_grows(stable, final)


@pytest.mark.parametrize("family", ["gpt2", "opt", "llama"])
def test_stable_text_never_shows_an_unfinished_character(family: str) -> None:
    codec = load_codec(family)
    text = "a😀日本é" * 40

    stable, final = stream(codec, codec.encode("The cat"), codec.encode_bare(text))

    assert not any("\ufffd" in each for each in stable)
    assert final.lstrip(" ") == text


def test_unfinished_character_shows_in_the_final_text_alone() -> None:
    codec = load_codec("gpt2")

    stable, final = stream(codec, [], codec.encode("a😀")[:-1])

    assert (stable[-1], final) == ("a", "a\ufffd")


def test_broken_character_becomes_stable_once_another_follows() -> None:
    codec = load_codec("gpt2")

    stable, _ = stream(codec, [], codec.encode("😀")[:2] + codec.encode("x"))

    assert stable == ["", "", "\ufffdx"]


def test_run_of_byte_tokens_becomes_stable_when_it_ends() -> None:
    codec = load_codec("llama")
    smiley, letter = codec.encode_bare("x😀")[-4:], codec.encode_bare("a\nb")[-1]

    stable, final = stream(codec, codec.encode("The"), [*smiley, letter])

    assert (stable[:4], stable[4], final) == ([""] * 4, "😀b", "😀b")


def test_endless_run_of_byte_tokens_still_reaches_the_reader() -> None:
    codec = load_codec("llama")
    text = "日本語" * 100
    generated = codec.encode_bare(f"x{text}")[-3 * len(text) :]

    stable, final = stream(codec, codec.encode("The"), generated)

    assert final == text
    assert len(stable[-1]) > len(text) - MAX_RUN_TOKENS


def test_endless_run_of_wrong_bytes_still_reaches_the_reader() -> None:
    codec = load_codec("llama")
    wrong = next(token for token, byte in codec.fallback_bytes.items() if byte == 0xFF)

    stable, final = stream(codec, codec.encode("The"), [wrong] * 300)

    assert final == "\ufffd" * 300
    assert len(stable[-1]) > 300 - MAX_RUN_TOKENS


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("n_in_context", [1, 2, 3])
def test_character_that_the_context_begins_belongs_to_the_generated_text(
    family: str, n_in_context: int
) -> None:
    codec = load_codec(family)
    ids = codec.encode("cat,😀")
    seam = len(ids) - 4 + n_in_context

    stable, final = stream(codec, ids[:seam], ids[seam:])

    assert final == "😀"
    assert "\ufffd" not in "".join(stable)


def test_replacement_character_in_the_context_stays_there() -> None:
    codec = load_codec("gpt2")

    _, final = stream(codec, codec.encode("cat\ufffd"), codec.encode("x"))

    assert final == "x"


def test_long_context_of_byte_tokens_is_read_from_a_character_on() -> None:
    codec = load_codec("llama")
    ids = codec.encode("日本語" * 100)

    _, final = stream(codec, ids[:-3], ids[-3:])

    assert final == "語"


def test_special_tokens_have_no_text() -> None:
    codec = load_codec("llama")

    _, final = stream(codec, codec.encode("The"), [2, *codec.encode_bare("\n")[-1:], 1, 0])

    assert final == "\n"


@given(st.lists(st.integers(0, 255), max_size=150))
@example([0xF0] * 100)
@example([0x80] * 100)
@example([0xC3, 0xA9] * 40 + [0xC3])
def test_any_bytes_decode_as_the_whole_does(values: list[int]) -> None:
    codec = load_codec("gpt2")
    by_byte = byte_level_ids(codec)
    generated = [by_byte[value] for value in values if value in by_byte]

    stable, final = stream(codec, codec.encode("cat"), generated)

    assert final == text_behind(codec, codec.encode("cat"), generated)
    assert_only_grows(stable, final)


def byte_level_ids(codec: TextCodec) -> dict[int, int]:
    """Ids of one-byte tokens, found as the spelling of characters that have no token."""
    spellings = {chr(code): codec.encode(chr(code)) for code in (*range(256), 0x4E00, 0x1F600)}
    by_byte = {}
    for character, ids in spellings.items():
        encoded = character.encode()
        if len(encoded) == len(ids):
            by_byte |= dict(zip(encoded, ids, strict=True))
    return by_byte
