"""Tests of what requests add to scores: which tokens, and how much."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neodim_sampling.adjustments import adjust
from neodim_sampling.parameters import AdjustmentParams, WarperParams
from neodim_sampling.pipeline import shape_scores
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints

N_VOCAB = 6


def make_row(
    generated: list[int], input_ids: list[int] | None = None, n_vocab: int = N_VOCAB, **fields: Any
) -> SamplingRow:
    settings = RowSettings(
        warpers=WarperParams(),
        adjustments=AdjustmentParams(**fields),
        constraints=TokenConstraints(),
        n_vocab=n_vocab,
    )
    row = SamplingRow(settings, input_ids or [1], 0, 0)
    for token in generated:
        row.append(token)
    return row


def added(row: SamplingRow) -> list[float]:
    scores: list[float] = adjust(torch.zeros(1, N_VOCAB), [row])[0].tolist()
    return scores


def test_presence_penalty_is_taken_off_once_of_each_token_that_was_generated():
    row = make_row([2, 4, 2, 2], presence_penalty=0.5)

    assert added(row) == [0, 0, -0.5, 0, -0.5, 0]


def test_frequency_penalty_is_taken_off_for_each_time():
    row = make_row([2, 4, 2, 2], frequency_penalty=0.5)

    assert added(row) == [0, 0, -1.5, 0, -0.5, 0]


def test_everything_together_is_the_sum():
    row = make_row(
        [2, 4, 2],
        presence_penalty=1.0,
        frequency_penalty=0.25,
        logit_bias=((2, 10.0), (5, -3.0)),
    )

    assert added(row) == [0, 0, 8.5, 0, -1.25, -3]


def test_negative_penalties_favour_what_was_generated():
    row = make_row([3], presence_penalty=-1.0, frequency_penalty=-0.5)

    assert added(row) == [0, 0, 0, 1.5, 0, 0]


def test_the_prompt_is_not_penalised():
    row = make_row([], input_ids=[2, 3, 2], presence_penalty=2.0, frequency_penalty=2.0)

    assert added(row) == [0] * N_VOCAB


def test_scores_are_left_alone():
    scores = torch.zeros(1, N_VOCAB)

    adjust(scores, [make_row([2], presence_penalty=1.0)])

    assert scores.tolist() == [[0] * N_VOCAB]


def test_nothing_to_add_gives_the_scores_back():
    scores = torch.randn(2, N_VOCAB)

    assert adjust(scores, [make_row([2]), make_row([3])]) is scores


def test_nothing_is_added_to_a_row_beside_one_that_has_something():
    scores = torch.randn(2, N_VOCAB)

    out = adjust(scores, [make_row([2]), make_row([2], presence_penalty=1.0)])

    assert torch.equal(out[0], scores[0])
    assert not torch.equal(out[1], scores[1])


def test_an_impossible_token_stays_impossible():
    scores = torch.full((1, N_VOCAB), -torch.inf)

    out = adjust(scores, [make_row([2], presence_penalty=-2.0, logit_bias=((3, 100.0),))])

    assert torch.equal(out, scores)


def test_a_resumed_row_counts_what_it_had():
    fields: dict[str, Any] = {"frequency_penalty": 0.5}
    grown = make_row([2, 4, 2], **fields)
    resumed = SamplingRow(grown.settings, [1], 0, 0, 0, [2, 4, 2])

    grown.append(2)
    resumed.append(2)

    assert added(resumed) == added(grown) == [0, 0, -1.5, 0, -0.5, 0]


def test_counts_of_many_different_tokens_are_all_kept():
    row = make_row([*range(200), *range(100)], n_vocab=200, frequency_penalty=1.0)

    out = adjust(torch.zeros(1, 200), [row])

    assert out[0].tolist() == [-2.0] * 100 + [-1.0] * 100


def test_what_is_added_comes_before_constraints_and_warpers():
    settings = RowSettings(
        warpers=WarperParams(temperature=2.0),
        adjustments=AdjustmentParams(logit_bias=((0, 4.0), (1, 50.0))),
        constraints=TokenConstraints(banned_ids=(1,)),
        n_vocab=3,
    )

    out = shape_scores(torch.tensor([[2.0, 2.0, 2.0]]), [SamplingRow(settings, [0], 0, 0)])

    assert out.tolist() == [[3.0, -torch.inf, 1.0]]


penalties = st.floats(-2, 2, width=32)
biases = st.dictionaries(st.integers(0, N_VOCAB - 1), st.floats(-100, 100, width=32), max_size=4)


@st.composite
def rows(draw: st.DrawFn) -> SamplingRow:
    return make_row(
        draw(st.lists(st.integers(0, N_VOCAB - 1), max_size=12)),
        presence_penalty=draw(penalties),
        frequency_penalty=draw(penalties),
        logit_bias=tuple(draw(biases).items()),
    )


@given(batch=st.lists(rows(), min_size=1, max_size=5), seed=st.integers(0, 2**32))
def test_a_batch_is_its_rows_one_by_one(batch: list[SamplingRow], seed: int):
    scores = torch.randn(len(batch), N_VOCAB, generator=torch.Generator().manual_seed(seed))

    together = adjust(scores, batch)

    alone = [adjust(scores[i : i + 1], [row]) for i, row in enumerate(batch)]
    assert torch.equal(together, torch.cat(alone))


@given(row=rows(), seed=st.integers(0, 2**32))
def test_a_row_gets_what_the_formula_says(row: SamplingRow, seed: int):
    scores = torch.randn(1, N_VOCAB, generator=torch.Generator().manual_seed(seed))
    wanted, bias = row.settings.adjustments, dict(row.settings.adjustments.logit_bias)

    out: Tensor = adjust(scores, [row])

    for token in range(N_VOCAB):
        count = row.generated.count(token)
        expected = float(scores[0, token]) + bias.get(token, 0.0)
        expected -= wanted.presence_penalty * (count > 0) + wanted.frequency_penalty * count
        assert float(out[0, token]) == pytest.approx(expected, abs=1e-4)
