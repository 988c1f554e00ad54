"""Tests of what requests add to scores: which tokens, and how much."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neodim_sampling.adjustments import adjust
from neodim_sampling.counted_text import PenaltyTokens
from neodim_sampling.parameters import WarperParams
from neodim_sampling.penalty_parameters import AdjustmentParams
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


def test_multiplicative_penalty_divides_a_positive_score_and_multiplies_another():
    row = make_row([0, 1, 2, 2], presence_penalty=1.0, is_presence_multiplicative=True)

    out = adjust(torch.tensor([[3.0, -3.0, 0.0, 5.0, -5.0, 1.0]]), [row])

    assert out.tolist() == [[1.5, -6.0, 0.0, 5.0, -5.0, 1.0]]


def test_multiplicative_frequency_penalty_does_so_for_each_time():
    row = make_row([0, 0, 1, 1, 2], frequency_penalty=0.5, is_frequency_multiplicative=True)

    out = adjust(torch.tensor([[9.0, -4.0, 3.0, 7.0, 0.0, 0.0]]), [row])

    assert out.tolist() == [[4.0, -9.0, 2.0, 7.0, 0.0, 0.0]]


def test_multiplicative_penalty_of_zero_changes_nothing():
    row = make_row(
        [0, 1, 1],
        sequence_penalty=0.0,
        is_presence_multiplicative=True,
        is_frequency_multiplicative=True,
        is_sequence_multiplicative=True,
    )
    scores = torch.randn(1, N_VOCAB)

    assert adjust(scores, [row]) is scores


def test_multiplicative_penalty_acts_on_what_biases_and_earlier_penalties_left():
    row = make_row(
        [2, 3, 2],
        logit_bias=((2, 10.0), (3, -1.0)),
        presence_penalty=2.0,
        frequency_penalty=1.0,
        is_frequency_multiplicative=True,
        sequence_penalty=3.0,
    )

    out = adjust(torch.zeros(1, N_VOCAB), [row])

    # 2: (0 + 10 - 2) / 2 / 2; 3: (0 - 1 - 2) * 2, and it would repeat "2 3".
    assert out.tolist() == [[0, 0, 2, -9, 0, 0]]


def test_sequence_penalty_is_for_tokens_that_would_repeat_a_run():
    rows = [
        make_row([2, 3, 4, 2, 3], sequence_penalty=1.5, sequence_min_length=length)
        for length in (2, 3, 4)
    ]

    assert [added(row) for row in rows] == [
        [0, 0, 0, 0, -1.5, 0],
        [0, 0, 0, 0, -1.5, 0],
        [0, 0, 0, 0, 0, 0],
    ]


@pytest.mark.parametrize("value", [1e300, -1e300])
@pytest.mark.parametrize("is_multiplicative", [False, True])
def test_finite_scores_stay_finite(value: float, is_multiplicative: bool):
    penalty = abs(value) if is_multiplicative else value
    row = make_row(
        [0, 1, 2, 0, 1],
        logit_bias=((0, value), (3, value)),
        presence_penalty=penalty,
        frequency_penalty=penalty,
        sequence_penalty=penalty,
        is_presence_multiplicative=is_multiplicative,
        is_frequency_multiplicative=is_multiplicative,
        is_sequence_multiplicative=is_multiplicative,
    )

    out = adjust(torch.tensor([[5.0, -5.0, 0.0, 1.0, -1.0, 0.0]]), [row])

    assert out.isfinite().all()


def test_penalty_near_minus_one_stays_finite_however_often_it_counts():
    row = make_row([0, 1] * 400, frequency_penalty=-0.999999, is_frequency_multiplicative=True)

    out = adjust(torch.tensor([[5.0, -5.0, 0.0, 1.0, -1.0, 0.0]]), [row])

    assert out.isfinite().all()
    assert out.argmax() == 0


penalties = st.floats(-2, 2, width=32)
biases = st.dictionaries(st.integers(0, N_VOCAB - 1), st.floats(-100, 100, width=32), max_size=4)


ids = st.lists(st.integers(0, N_VOCAB - 1), max_size=12)
NAMES = ("presence", "frequency", "sequence")


@st.composite
def rows(draw: st.DrawFn) -> SamplingRow:
    generated, n_resumed = draw(ids), draw(st.integers(0, 12))
    fields = {f"{name}_penalty": draw(penalties) for name in NAMES}
    for name in NAMES:
        is_multiplicative = draw(st.booleans()) and fields[f"{name}_penalty"] > -1
        fields[f"is_{name}_multiplicative"] = is_multiplicative
    settings = RowSettings(
        warpers=WarperParams(),
        adjustments=AdjustmentParams(
            **fields,
            sequence_min_length=draw(st.integers(2, 4)),
            counts_prompt=draw(st.booleans()),
            counts_generated=draw(st.booleans()),
            logit_bias=tuple(draw(biases).items()),
        ),
        penalty_tokens=PenaltyTokens(
            counted_ids=tuple(draw(ids)), exempt_ids=frozenset(draw(ids)[:2])
        ),
        constraints=TokenConstraints(),
        n_vocab=N_VOCAB,
    )
    row = SamplingRow(settings, draw(ids), 0, 0, 0, generated[:n_resumed])
    for token in generated[n_resumed:]:
        row.append(token)
    return row


@given(batch=st.lists(rows(), min_size=1, max_size=5), seed=st.integers(0, 2**32))
def test_a_batch_is_its_rows_one_by_one(batch: list[SamplingRow], seed: int):
    scores = torch.randn(len(batch), N_VOCAB, generator=torch.Generator().manual_seed(seed))

    together = adjust(scores, batch)

    alone = [adjust(scores[i : i + 1], [row]) for i, row in enumerate(batch)]
    assert torch.equal(together, torch.cat(alone))


def would_repeat(row: SamplingRow, token: int) -> bool:
    """The definition, word for word."""
    wanted, texts = row.settings.adjustments, [list(row.settings.penalty_tokens.counted_ids)]
    prompt = row.input_ids if wanted.counts_prompt else []
    texts.append(prompt + (row.generated if wanted.counts_generated else []))
    n_before = wanted.sequence_min_length - 1
    running = prompt + row.generated
    if len(running) < n_before:
        return False
    run = [*running[len(running) - n_before :], token]
    return any(
        text[start : start + len(run)] == run for text in texts for start in range(len(text))
    )


def penalised(row: SamplingRow, token: int, score: float) -> float:
    """What the table of penalties says, a token at a time."""
    wanted, tokens = row.settings.adjustments, row.settings.penalty_tokens
    score += dict(wanted.logit_bias).get(token, 0.0)
    counted = [*tokens.counted_ids]
    counted += row.input_ids if wanted.counts_prompt else []
    counted += row.generated if wanted.counts_generated else []
    n = counted.count(token)
    if token in tokens.exempt_ids or n == 0:
        return score
    times = {"presence": 1, "frequency": n, "sequence": int(would_repeat(row, token))}
    for name, number in times.items():
        penalty = getattr(wanted, f"{name}_penalty")
        if getattr(wanted, f"is_{name}_multiplicative"):
            factor = (1 + penalty) ** number
            score = score / factor if score > 0 else score * factor
        else:
            score -= penalty * number
    return score


@given(row=rows(), seed=st.integers(0, 2**32))
def test_a_row_gets_what_the_formula_says(row: SamplingRow, seed: int):
    scores = torch.randn(1, N_VOCAB, generator=torch.Generator().manual_seed(seed))

    out: Tensor = adjust(scores, [row])

    for token in range(N_VOCAB):
        expected = penalised(row, token, float(scores[0, token]))
        assert float(out[0, token]) == pytest.approx(expected, rel=1e-4, abs=1e-4)
