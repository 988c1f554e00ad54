from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizer_families import ALL_FAMILIES, BYTE_LEVEL, FAMILIES, load_codec, load_records

from neodim_sampling.text.codec import TextCodec

FACTS = [each for each in load_records("tokenizer_facts.jsonl") if each["family"] in FAMILIES]
NORMALIZED = [r for r in load_records("tokenize_cases.jsonl") if r["kind"] == "normalize"]
LLAMA_SPECIAL = ("<s>", "</s>", "<unk>")


@pytest.mark.parametrize("facts", FACTS, ids=lambda each: each["family"])
def test_codec_finds_the_special_tokens_of_each_family(facts: dict[str, Any]) -> None:
    codec = load_codec(facts["family"])

    found = (codec.special_ids, codec.ignored_ids)

    assert found == (set(facts["all_special_ids"]), set(facts["ignored_ids"]))


@pytest.mark.parametrize("facts", FACTS, ids=lambda each: each["family"])
def test_codec_encodes_as_each_family_does(facts: dict[str, Any]) -> None:
    codec = load_codec(facts["family"])

    encoded = {text: codec.encode(text) for text in facts["encode"]}

    assert encoded == facts["encode"]


@pytest.mark.parametrize("facts", FACTS, ids=lambda each: each["family"])
def test_codec_decodes_as_each_family_does(facts: dict[str, Any]) -> None:
    codec = load_codec(facts["family"])

    decoded = {text: codec.decode(codec.encode(text)) for text in facts["roundtrip"]}

    assert decoded == facts["roundtrip"]


@pytest.mark.model
@pytest.mark.parametrize("record", NORMALIZED, ids=lambda each: repr(each["text"]))
def test_codec_normalises_as_recorded(smollm2: TextCodec, record: dict[str, Any]) -> None:
    ids = smollm2.encode(smollm2.strip_special(record["text"]))

    text = smollm2.decode(ids)

    assert (ids, text) == (record["tokens"], record["normalized"])


@pytest.mark.model
def test_codec_keeps_a_token_that_is_special_but_not_registered(smollm2: TextCodec) -> None:
    text = smollm2.strip_special("<repo_name><|endoftext|>x<|im_start|><|im_end|>")

    ids = smollm2.encode(text)

    assert (ids, smollm2.decode(ids)) == ([3, 104], "<repo_name>x")


@pytest.mark.model
def test_vocabulary_has_no_added_tokens(smollm2: TextCodec) -> None:
    assert smollm2.n_vocab == 49152


def test_decode_keeps_spaces_before_punctuation() -> None:
    codec = load_codec("gpt2")

    text = codec.decode(codec.encode("Hello , world ! do n't"))

    assert text == "Hello , world ! do n't"


def test_leading_ids_are_those_that_encode_puts_in_front() -> None:
    leading = {family: load_codec(family).leading_ids for family in FAMILIES}

    assert leading == {"gpt2": (), "opt": (), "xglm": (), "llama": (1,)}


def test_encode_bare_leaves_the_leading_ids_out() -> None:
    assert load_codec("llama").encode_bare("cat") == [396]


def test_empty_text_has_no_tokens(family_codec: TextCodec) -> None:
    assert family_codec.encode("") == []


def test_newline_token_spelt_by_other_tokens_stays_as_it_is() -> None:
    codec = load_codec("opt")
    ids = [codec.encode(each)[0] for each in "</s>"]

    text = codec.decode([*ids, *codec.encode("\n"), *ids])

    assert text == "</s>\n</s>"


def test_incomplete_character_decodes_to_the_replacement_character() -> None:
    codec = load_codec("gpt2")

    assert codec.decode(codec.encode("a😀")[:-1]) == "a\ufffd"


def test_byte_tokens_are_found_only_where_there_are_some() -> None:
    n_bytes = {family: len(load_codec(family).fallback_bytes) for family in FAMILIES}

    assert n_bytes == {"gpt2": 0, "opt": 0, "xglm": 0, "llama": 256}


@pytest.mark.parametrize(
    ("text", "after", "rest"),
    [
        ("a<s>b", "", "ab"),
        ("<<s>s>", "", ""),
        ("x</</s>s>y", "", "xy"),
        ("<un<unk>k><s", "", "<s"),
        ("k>tail", "head<un", "tail"),
        ("s>s>s>x", "<", "x"),
        ("", "<s", ""),
        ("plain", "text", "plain"),
    ],
)
def test_strip_special_leaves_no_special_token(text: str, after: str, rest: str) -> None:
    assert load_codec("llama").strip_special(text, after=after) == rest


@given(st.lists(st.sampled_from([*"<>/sunka", *LLAMA_SPECIAL]), max_size=40).map("".join))
def test_strip_special_ends_at_a_fixpoint(text: str) -> None:
    codec = load_codec("llama")

    stripped = codec.strip_special(text)

    assert not any(each in stripped for each in LLAMA_SPECIAL)
    assert codec.strip_special(stripped) == stripped


def test_strip_special_copes_with_deep_nesting() -> None:
    text = "<" * 20_000 + "s>" * 20_000

    assert load_codec("llama").strip_special(text) == ""


@given(st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"])))
def test_byte_level_text_comes_back_as_it_was(text: str) -> None:
    codec = load_codec("opt")

    assert codec.decode(codec.encode(text)) == text


@given(st.text(st.characters(exclude_characters="<▁", exclude_categories=["Cs"])))
def test_byte_fallback_text_comes_back_as_it_was(text: str) -> None:
    codec = load_codec("llama")

    assert codec.decode(codec.encode(text)) == text


@pytest.mark.parametrize(
    ("family", "token", "piece"),
    [
        ("gpt2", 333, " cat"),
        ("gpt2", 299, "at"),
        ("gpt2", 0, "<|endoftext|>"),
        ("llama", 396, " cat"),
        ("llama", 2, "</s>"),
        ("opt", 2, "\n"),
        ("xglm", 49, " cat"),
    ],
)
def test_piece_is_what_a_token_spells_within_a_text(family: str, token: int, piece: str) -> None:
    assert load_codec(family).piece(token) == piece


def test_piece_of_an_unfinished_character_is_the_replacement_character() -> None:
    codec = load_codec("gpt2")

    assert codec.piece(codec.encode("\U0001f600")[0]) == "\ufffd"


@pytest.mark.parametrize("family", ALL_FAMILIES)
@given(st.lists(st.sampled_from(["The", " cat", "  ", "\n", "é", "😀", "日本", "</s>", "a"])))
def test_spans_are_of_the_tokens_that_a_text_has_without_leading_ones(
    family: str, parts: list[str]
) -> None:
    codec, text = load_codec(family), "".join(parts)

    ids, spans = codec.encode_with_spans(text)

    assert ids == codec.encode_bare(text)
    assert len(spans) == len(ids)
    assert all(0 <= start < stop <= len(text) for start, stop in spans)
    assert spans == sorted(spans)


@pytest.mark.parametrize("family", BYTE_LEVEL)
@given(st.text(st.sampled_from("The cat\n.é<>")))
def test_span_of_a_whole_piece_is_its_text(family: str, text: str) -> None:
    codec = load_codec(family)

    ids, spans = codec.encode_with_spans(text)

    whole = [(codec.alone(each), span) for each, span in zip(ids, spans, strict=True)]
    whole = [(piece, span) for piece, span in whole if "\ufffd" not in piece]
    # Offsets may leave out the spaces in front.
    assert all(piece.strip(" ") == text[slice(*span)].strip(" ") for piece, span in whole)


@pytest.mark.parametrize("family", [*BYTE_LEVEL, "llama", "opt"])
def test_tokens_of_one_character_all_have_its_span(family: str) -> None:
    _, spans = load_codec(family).encode_with_spans("a😀b")

    assert [each for each in spans if each == (1, 2)] == [(1, 2)] * 4
    assert (spans[0], spans[-1]) == ((0, 1), (2, 3))


@pytest.mark.parametrize("family", ["opt", "xglm"])
def test_newline_that_is_written_as_another_token_has_a_span_of_one(family: str) -> None:
    codec = load_codec(family)

    ids, spans = codec.encode_with_spans("a\n\n</s> cat")

    newline = codec.encode("\n")[0]
    found = [span for each, span in zip(ids, spans, strict=True) if each == newline]
    assert found == [(1, 2), (2, 3), (3, 7)]
    assert spans[-1][1] == 11


@pytest.mark.parametrize(
    ("family", "token", "text"),
    [
        ("gpt2", 333, " cat"),
        ("gpt2", 0, "<|endoftext|>"),
        # A word that begins a text has no space.
        ("llama", 396, "cat"),
        ("llama", 2, "</s>"),
        ("opt", 2, "</s>"),
        ("xglm", 49, "cat"),
    ],
)
def test_token_alone_is_decoded_without_its_neighbours(family: str, token: int, text: str) -> None:
    assert load_codec(family).alone(token) == text


@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_codec_that_shows_special_tokens_spells_each_by_its_name(family: str) -> None:
    codec = load_codec(family)
    shown = codec.showing_special()
    cat = codec.encode_bare(" cat")

    for token in codec.ignored_ids:
        assert codec.decode([*cat, token]) == codec.decode(cat)
        assert shown.decode([*cat, token]).rstrip().endswith(shown.alone(token))
        assert shown.alone(token) in shown.piece(token)
    assert shown.ignored_ids == frozenset()
    assert shown.decode(cat) == codec.decode(cat)
