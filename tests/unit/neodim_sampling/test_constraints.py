"""Tests of the constraints: which tokens can no longer come."""

from __future__ import annotations

import math
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from neodim_sampling.constraints import constrain
from neodim_sampling.parameters import WarperParams
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints

N_VOCAB = 10
EOS = 9


def make_row(
    input_ids: list[int], generated: list[int], n_vocab: int = N_VOCAB, **constraints: Any
) -> SamplingRow:
    limits = TokenConstraints(**constraints)
    settings = RowSettings(warpers=WarperParams(), constraints=limits, n_vocab=n_vocab)
    return SamplingRow(settings, input_ids, 0, 0, 0, generated)


def banned(row: SamplingRow, width: int = N_VOCAB) -> set[int]:
    scores = torch.zeros(1, width)
    return set((constrain(scores, [row])[0] == -math.inf).nonzero().flatten().tolist())


def test_row_without_constraints_gets_its_scores_back():
    scores = torch.randn(1, N_VOCAB)
    row = make_row([1, 2], [3])

    constrained = constrain(scores, [row])

    assert constrained is scores


def test_end_of_text_is_banned_throughout_unless_the_row_can_stop_early():
    held = [make_row([1], made, eos_ids=frozenset({8, EOS})) for made in ([], [2])]
    free = [
        make_row([1], made, eos_ids=frozenset({8, EOS}), can_stop_early=True) for made in ([], [2])
    ]

    found = [banned(row) for row in (*held, *free)]

    assert found == [{8, EOS}, {8, EOS}, {8, EOS}, set()]


def test_model_without_end_of_text_bans_none():
    row = make_row([1], [])

    found = banned(row)

    assert found == set()


def test_first_token_bans_hold_for_the_first_token_only():
    rows = [make_row([1], made, banned_first_ids=frozenset({3, 4})) for made in ([], [2])]

    found = [banned(row) for row in rows]

    assert found == [{3, 4}, set()]


def test_single_token_sequence_is_always_banned():
    rows = [make_row([1], made, banned_sequences=((5,), (6,))) for made in ([], [2])]

    found = [banned(row) for row in rows]

    assert found == [{5, 6}, {5, 6}]


def test_longer_sequence_bans_its_end_when_its_beginning_is_there():
    sequences = ((1, 2, 3), (2, 4), (7, 2, 5))
    rows = [
        make_row([0, 1, 2], [], banned_sequences=sequences),
        make_row([0, 1], [2], banned_sequences=sequences),
        make_row([0], [7, 2], banned_sequences=sequences),
        make_row([], [], banned_sequences=sequences),
    ]

    found = [banned(row) for row in rows]

    assert found == [{3, 4}, {3, 4}, {4, 5}, set()]


def test_whitelist_bans_all_else_and_end_of_text_with_it():
    row = make_row([1], [2], allowed_ids=(4, 6), eos_ids=frozenset({EOS}), can_stop_early=True)

    found = banned(row)

    assert found == set(range(N_VOCAB)) - {4, 6}


def test_whitelist_and_blacklist_may_leave_nothing():
    row = make_row([1], [2], allowed_ids=(4,), banned_sequences=((4,),))

    found = banned(row)

    assert found == set(range(N_VOCAB))


def test_ngram_that_the_prompt_has_is_not_completed_again():
    row = make_row([1, 2, 3, 4, 1], [2], no_repeat_ngram_size=3)

    found = banned(row)

    assert found == {3}


def test_ngram_of_one_bans_every_token_seen():
    row = make_row([1, 2, 3], [], no_repeat_ngram_size=1)
    row.append(7)

    found = banned(row)

    assert found == {1, 2, 3, 7}


def test_ids_beyond_the_vocabulary_are_impossible():
    rows = [make_row([1], [2], n_vocab=size) for size in (8, 10, 12)]

    constrained = constrain(torch.zeros(3, 12), rows)

    lost = [(line == -math.inf).nonzero().flatten().tolist() for line in constrained]
    assert lost == [[8, 9, 10, 11], [10, 11], []]


limits = st.builds(
    dict,
    allowed_ids=st.none() | st.lists(st.integers(0, 9), min_size=1).map(tuple),
    banned_sequences=st.lists(
        st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple), max_size=4
    ).map(tuple),
    banned_first_ids=st.frozensets(st.integers(0, 9), max_size=3),
    no_repeat_ngram_size=st.none() | st.integers(1, 4),
    eos_ids=st.frozensets(st.integers(8, 9)),
    can_stop_early=st.booleans(),
    min_new_tokens=st.integers(0, 4),
    options=st.lists(
        st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple), max_size=4
    ).map(tuple),
    first_ids=st.none() | st.lists(st.integers(0, 9), min_size=1).map(tuple),
    n_vocab=st.integers(7, 10),
)
texts = st.lists(st.integers(0, 9), max_size=8)
rows = st.builds(lambda text, made, given: make_row(text, made, **given), texts, texts, limits)


@given(st.lists(rows, min_size=1, max_size=4), st.integers(0, 1000))
def test_batch_equals_its_rows_one_by_one_and_only_bans(batch: list[SamplingRow], seed: int):
    scores = torch.randn(len(batch), N_VOCAB, generator=torch.Generator().manual_seed(seed))
    before = scores.clone()

    together = constrain(scores, batch)

    alone = [constrain(scores[i : i + 1], [row]) for i, row in enumerate(batch)]
    live = together > -math.inf
    assert torch.equal(together, torch.cat(alone))
    assert torch.equal(together[live], scores[live])
    assert torch.equal(scores, before)


def test_banned_ids_can_never_come():
    found = [banned(make_row([1], made, banned_ids=(3, 5))) for made in ([], [3], [2, 4])]

    assert found == [{3, 5}] * 3


def test_end_of_text_may_be_the_first_token_of_a_text_that_can_be_empty():
    free = {"eos_ids": frozenset({EOS}), "can_stop_early": True}

    found = [banned(make_row([1], [], **free, can_be_empty=empty)) for empty in (False, True)]

    assert found == [{EOS}, set()]


FREE = {"eos_ids": frozenset({EOS}), "can_stop_early": True, "can_be_empty": True}


def allowed(row: SamplingRow) -> set[int]:
    return set(range(N_VOCAB)) - banned(row)


def test_end_of_text_is_banned_until_there_are_enough_tokens():
    texts: list[list[int]] = [[], [2], [2, 3], [2, 3, 4]]

    found = [banned(make_row([1, 1, 1], made, min_new_tokens=2, **FREE)) for made in texts]

    assert found == [{EOS}, {EOS}, set(), set()]


def test_only_what_goes_on_with_an_option_may_come_and_the_end_where_one_is_whole():
    options = ((1, 2), (1, 2, 3), (1, 4), (5,))
    texts: list[list[int]] = [[], [1], [1, 2], [1, 2, 3], [5]]

    found = [allowed(make_row([7], made, options=options, **FREE)) for made in texts]

    assert found == [{1, 5}, {2, 4}, {3, EOS}, {EOS}, {EOS}]


def test_new_option_may_begin_where_the_text_may_not_end_yet():
    fields = {"options": ((1, 2), (1, 2, 3)), "min_new_tokens": 3, **FREE}
    texts: list[list[int]] = [[1, 2], [1, 2, 1], [1, 2, 3], [1, 2, 1, 2]]

    found = [allowed(make_row([7], made, **fields)) for made in texts]

    assert found == [{1, 3}, {2}, {EOS}, {3, EOS}]


def test_text_that_left_all_options_has_no_token_left():
    row = make_row([7], [1, 1], options=((1, 2),), **FREE)

    assert allowed(row) == set()


def test_option_of_a_model_without_end_of_text_has_no_token_left_where_it_is_whole():
    row = make_row([7], [1, 2], options=((1, 2),), can_stop_early=True)

    assert allowed(row) == set()


def test_grown_text_is_as_far_in_its_options_as_a_resumed_one():
    fields = {"options": ((1, 2, 3), (1, 4)), **FREE}
    grown = make_row([7], [], **fields)

    for token in (1, 2):
        grown.append(token)

    assert allowed(grown) == allowed(make_row([7], [1, 2], **fields)) == {3}


def test_first_ids_bind_the_first_token_alone():
    found = [allowed(make_row([7], made, first_ids=(2, 4), **FREE)) for made in ([], [2])]

    assert found == [{2, 4}, set(range(N_VOCAB))]


def test_options_and_whitelist_allow_what_both_do():
    row = make_row([7], [], options=((1, 2), (3,)), allowed_ids=(2, 3), **FREE)

    assert allowed(row) == {3}


def test_token_that_was_turned_down_may_come_again_one_step_later():
    row = make_row([7], [])
    row.ruled_out += [3, 4]

    before = banned(row)
    row.append(5)

    assert (before, banned(row)) == ({3, 4}, set())
