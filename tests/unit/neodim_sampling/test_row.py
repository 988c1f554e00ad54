"""Tests of what a row remembers of its text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from neodim_sampling.parameters import WarperParams
from neodim_sampling.penalty_parameters import AdjustmentParams, RepetitionPenaltyParams
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints
from neodim_sampling.text_indexes import NgramIndex, PenaltyText, SequenceIndex

texts = st.lists(st.integers(0, 3), max_size=40)


def make_row(input_ids: list[int], generated: list[int], **settings: object) -> SamplingRow:
    given_settings = {"constraints": TokenConstraints(), **settings}
    all_settings = RowSettings(warpers=WarperParams(), n_vocab=32, **given_settings)
    return SamplingRow(all_settings, input_ids, 0, 0, 0, generated)


def test_tail_reaches_from_generated_tokens_into_the_prompt():
    row = make_row([1, 2, 3], [4, 5])

    tails = [row.tail(length) for length in (1, 2, 3, 5, 9)]

    assert tails == [(5,), (4, 5), (3, 4, 5), (1, 2, 3, 4, 5), (1, 2, 3, 4, 5)]


def test_step_counts_the_generated_tokens():
    row = make_row([1, 2, 3], [])

    row.append(7)
    row.append(8)

    assert (row.step, row.generated) == (2, [7, 8])


@given(texts, st.integers(1, 45))
def test_ngram_index_bans_what_a_search_of_the_whole_text_bans(text: list[int], n: int):
    index = NgramIndex(n, text[:5])

    for token in text[5:]:
        index.append(token)

    context = text[len(text) - n + 1 :] if len(text) >= n - 1 else None
    starts = range(len(text) - n + 1)
    expected = {text[i + n - 1] for i in starts if text[i : i + n - 1] == context}
    assert set(index.completions()) == expected


def test_ngram_index_of_a_size_beyond_any_text_bans_nothing():
    index = NgramIndex(10**9, [1, 1, 1, 1])

    banned = index.completions()

    assert not banned


@given(texts, st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=4), max_size=8))
def test_sequence_index_bans_what_a_comparison_with_each_bans(
    text: list[int], sequences: list[list[int]]
):
    row = make_row(text[:10], text[10:])

    banned = SequenceIndex(tuple(each) for each in sequences).completions(row.tail)

    expected = {s[-1] for s in sequences if text[len(text) - len(s) + 1 :] == s[:-1]}
    expected = {s[-1] for s in sequences if len(text) >= len(s) - 1 and s[-1] in expected}
    assert set(banned) == expected


def test_sequences_of_equal_beginnings_are_all_banned():
    row = make_row([5, 6], [])

    banned = SequenceIndex([(5, 6, 1), (5, 6, 2), (6, 3), (7, 6, 4)]).completions(row.tail)

    assert sorted(banned) == [1, 2, 3]


@given(st.lists(st.integers(0, 5), max_size=8), st.lists(st.integers(0, 5), max_size=150))
def test_penalty_text_knows_where_each_token_comes_next(base: list[int], generated: list[int]):
    text = PenaltyText(base)

    for token in generated:
        text.append(token)

    whole = base + generated
    places = range(len(whole))
    following = [next((j for j in places if j > i and whole[j] == whole[i]), None) for i in places]
    found = [place if place < 2**62 else None for place in text.next_same[: text.length].tolist()]
    assert text.ids[: text.length].tolist() == whole
    assert found == following
    assert text.n_base == len(base)


def test_resumed_row_remembers_what_an_unbroken_one_does():
    settings = {
        "penalty": RepetitionPenaltyParams(penalty=2.0),
        "constraints": TokenConstraints(no_repeat_ngram_size=2),
    }
    unbroken = make_row([1, 2], [], **settings)
    for token in (1, 2, 3, 1):
        unbroken.append(token)

    resumed = make_row([1, 2], [1, 2, 3, 1], **settings)

    assert resumed.ngrams is not None
    assert unbroken.ngrams is not None
    assert set(resumed.ngrams.completions()) == set(unbroken.ngrams.completions()) == {2}
    assert resumed.penalty_text is not None
    assert unbroken.penalty_text is not None
    assert resumed.penalty_text.n_base == unbroken.penalty_text.n_base == 2
    assert resumed.penalty_text.length == unbroken.penalty_text.length == 6


def test_counts_tell_how_often_each_token_was_generated_and_nothing_of_the_prompt():
    row = make_row([5, 5], [1, 2, 1], adjustments=AdjustmentParams(frequency_penalty=0.5))

    row.append(5)

    assert row.counts is not None
    n = row.counts.length
    counts = dict(zip(row.counts.ids[:n].tolist(), row.counts.counts[:n].tolist(), strict=True))
    assert counts == {1: 2, 2: 1, 5: 1}


def test_nothing_is_counted_or_added_where_nothing_is_asked_for():
    row = make_row([5], [1])

    assert (row.counts, row.bias) == (None, None)
