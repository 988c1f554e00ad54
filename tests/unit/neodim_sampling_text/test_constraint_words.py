from __future__ import annotations

import pytest
from tokenizer_families import load_codec

from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import ConstraintParams
from neodim_sampling.row import TokenConstraints
from neodim_sampling.text.constraint_words import resolve_constraints

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
