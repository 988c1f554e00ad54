from __future__ import annotations

import pytest
from tokenizer_families import load_codec

from neodim_sampling.counted_text import PenaltyTokens
from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import ConstraintParams
from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.row import TokenConstraints
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.constraint_words import resolve_constraints, resolve_penalties

EOS_IDS = frozenset({0})


def test_absent_lists_constrain_nothing() -> None:
    constraints = resolve_constraints(load_codec("gpt2"), ConstraintParams(), EOS_IDS)

    assert constraints == TokenConstraints(eos_ids=EOS_IDS)


def test_whitelist_allows_each_token_of_each_word_once() -> None:
    params = ConstraintParams(words_whitelist=("cat", "old cat", "x"))

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert constraints.allowed_ids == (67, 88, 221, 299, 333, 450, 451)


def test_blacklist_bans_each_spelling_once() -> None:
    params = ConstraintParams(words_blacklist=("cat", " cat", "old cat"))

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert constraints.banned_sequences == ((67, 299), (333,), (450, 333), (451, 333))


def test_blacklist_at_start_bans_single_tokens() -> None:
    params = ConstraintParams(words_blacklist_at_start=("cat", "\n"))

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert constraints.banned_first_ids == {67, 299, 333, 199, 221}


def test_empty_word_is_the_lone_space() -> None:
    params = ConstraintParams(words_whitelist=("",), words_blacklist_at_start=("",))

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert (constraints.allowed_ids, constraints.banned_first_ids) == ((221,), {221})


@pytest.mark.parametrize(
    "field", ["words_whitelist", "words_blacklist", "words_blacklist_at_start"]
)
def test_word_of_special_tokens_alone_is_refused(field: str) -> None:
    params = ConstraintParams(**{field: ("cat", " <|endoftext|>")})

    with pytest.raises(InvalidParams, match=rf"{field}: ' <\|endoftext\|>' has no tokens"):
        resolve_constraints(load_codec("gpt2"), params, EOS_IDS)


def test_other_constraints_are_handed_on() -> None:
    params = ConstraintParams(no_repeat_ngram_size=3, can_stop_early=True)

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert constraints == TokenConstraints(
        no_repeat_ngram_size=3, can_stop_early=True, eos_ids=EOS_IDS
    )


def test_ids_and_permissions_arrive_as_they_are() -> None:
    params = ConstraintParams(banned_ids=(7, 3), can_stop_early=True, can_be_empty=True)

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert constraints == TokenConstraints(
        banned_ids=(7, 3), can_stop_early=True, can_be_empty=True, eos_ids=EOS_IDS
    )


def test_inclusions_become_options_as_they_are_written() -> None:
    params = ConstraintParams(inclusions=("cat", " cat"), min_new_tokens=3, ends_where_stuck=True)

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert constraints == TokenConstraints(
        options=((67, 299), (333,)), min_new_tokens=3, ends_where_stuck=True, eos_ids=EOS_IDS
    )


def test_inclusion_of_a_tokenizer_that_adds_a_space_has_none_that_is_not_written() -> None:
    codec = load_codec("llama")

    constraints = resolve_constraints(codec, ConstraintParams(inclusions=("cat", " cat")), EOS_IDS)

    assert [codec.decode(codec.encode("x") + list(ids)) for ids in constraints.options] == [
        "xcat",
        "x cat",
    ]


def test_inclusions_of_the_first_token_are_the_ids_that_options_begin_with() -> None:
    params = ConstraintParams(
        inclusions=("cat", " cat", "cat cat"), is_inclusion_first_only=True, can_stop_early=True
    )

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert (constraints.first_ids, constraints.options) == ((67, 333), ())


def test_exclusions_of_the_first_token_ban_the_ids_that_they_begin_with() -> None:
    params = ConstraintParams(
        exclusions=("cat", " cat"), is_exclusion_first_only=True, words_blacklist_at_start=("\n",)
    )

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert constraints.banned_first_ids == {67, 333, 199, 221}


def test_exclusions_of_more_than_the_first_token_ban_no_ids() -> None:
    params = ConstraintParams(exclusions=("cat", " cat"))

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert constraints == TokenConstraints(eos_ids=EOS_IDS)


def test_special_token_is_excluded_as_its_id() -> None:
    params = ConstraintParams(exclusions=("cat", "<|endoftext|>"), banned_ids=(5,))

    constraints = resolve_constraints(load_codec("gpt2"), params, EOS_IDS)

    assert constraints.banned_ids == (5, 0)


def test_special_token_among_other_text_is_no_exclusion() -> None:
    params = ConstraintParams(exclusions=("a<|endoftext|>",))

    with pytest.raises(InvalidParams, match=r"completion_bias_exclusion: 'a<\|endoftext\|>' has a"):
        resolve_constraints(load_codec("gpt2"), params, EOS_IDS)


class Mute(TextCodec):
    """A codec that knows no text."""

    def __init__(self) -> None:
        pass

    def encode(self, text: str) -> list[int]:
        return []

    encode_bare = encode

    def decode(self, ids: object) -> str:
        return ""


@pytest.mark.parametrize("kind", ["inclusion", "exclusion"])
@pytest.mark.parametrize("is_first_only", [False, True])
def test_text_without_tokens_is_refused(kind: str, is_first_only: bool) -> None:
    params = ConstraintParams(**{f"{kind}s": ("\u200b",), f"is_{kind}_first_only": is_first_only})

    with pytest.raises(InvalidParams, match=f"completion_bias_{kind}: .* has no tokens"):
        resolve_constraints(Mute(), params, EOS_IDS)


def test_counted_text_is_in_the_tokenizers_own_spelling() -> None:
    codec = load_codec("llama")

    tokens = resolve_penalties(codec, AdjustmentParams(counted_text="the cat"), EOS_IDS)

    assert tokens == PenaltyTokens(
        counted_ids=tuple(codec.encode_bare("the cat")), exempt_ids=EOS_IDS
    )


def test_exceptions_are_spared_as_written_and_with_the_space_that_a_tokenizer_adds() -> None:
    spared = [
        resolve_penalties(load_codec(family), AdjustmentParams(exceptions=("cat",)), EOS_IDS)
        for family in ("gpt2", "llama")
    ]

    # LLaMA's: "c" and "at", and " cat".
    assert [tokens.exempt_ids for tokens in spared] == [{0, 67, 299}, {0, 289, 359, 396}]


def test_penalties_without_texts_spare_the_end_of_text_alone() -> None:
    assert resolve_penalties(load_codec("gpt2"), AdjustmentParams(), EOS_IDS) == PenaltyTokens(
        exempt_ids=EOS_IDS
    )
