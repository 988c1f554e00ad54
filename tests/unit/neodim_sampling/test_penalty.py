"""Tests of repetition penalty: which tokens, and how much."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neodim_sampling.parameters import WarperParams
from neodim_sampling.penalty import penalised_tokens, penalty_range, repetition_penalty_
from neodim_sampling.penalty_parameters import IncludeGenerated, RepetitionPenaltyParams
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints

CASES = Path(__file__).parents[2] / "data" / "warper_cases.jsonl"
N_VOCAB = 32
INPUT = [3, 5, 7, 9, 11, 13, 15, 17]


def make_row(
    penalty: RepetitionPenaltyParams | None,
    input_ids: list[int] | None = None,
    n_preamble: int = 0,
    override: tuple[int, ...] | None = None,
) -> SamplingRow:
    settings = RowSettings(
        warpers=WarperParams(),
        penalty=penalty,
        penalty_prompt_ids=override,
        constraints=TokenConstraints(),
        n_vocab=N_VOCAB,
    )
    return SamplingRow(settings, list(INPUT if input_ids is None else input_ids), n_preamble, 0, 0)


def penalty_records() -> list[dict[str, Any]]:
    every = [json.loads(line) for line in CASES.read_text().splitlines()]
    return [record for record in every if record["warper"] == "repetition_penalty"]


def row_of_record(record: dict[str, Any]) -> SamplingRow:
    params = record["params"]
    input_ids = record["steps"][0]["input_ids"][: params["input_len"]]
    # A range of 0 is what is left of "the whole prompt" when all of the input is preamble.
    is_empty = params["penalty_range"] == 0
    n_preamble = len(input_ids) if is_empty else params.get("preamble_tokens_count", 0)
    penalty = RepetitionPenaltyParams(
        penalty=params["penalty"],
        range_tokens=params["penalty_range"] or None,
        slope=params.get("penalty_slope"),
        include_preamble=params.get("include_preamble", False),
        include_generated=IncludeGenerated(params.get("include_generated", "slide")),
        truncate_to_input=params.get("truncate_to_input", False),
    )
    override = params.get("prompt_tokens")
    return make_row(penalty, input_ids, n_preamble, override and tuple(override))


def penalise(scores: Tensor, rows: list[SamplingRow]) -> Tensor:
    warped = scores.clone()
    repetition_penalty_(warped, rows)
    return warped


def changed(row: SamplingRow) -> list[int]:
    """Ids whose score the row's penalty changes, ascending."""
    scores = torch.ones(1, N_VOCAB)
    warped = penalise(scores, [row])
    return (warped != scores)[0].nonzero().flatten().tolist()


def generate(row: SamplingRow, *tokens: int) -> SamplingRow:
    for token in tokens:
        row.append(token)
    return row


def expected_penalty(scores: Tensor, row: SamplingRow) -> Tensor:
    """The same penalty written as the definition reads, token by token."""
    penalty = row.settings.penalty
    assert penalty is not None
    length = penalty_range(row, row.step)
    window = penalised_tokens(row, row.step)
    warped = scores.clone()
    for place, token in enumerate(window):
        factor = penalty.penalty
        if penalty.slope is not None and length > 1:
            x = 2 * (length - len(window) + place) / (length - 1) - 1
            y = penalty.slope * x / (1 + abs(x) * (penalty.slope - 1))
            factor = 1 + (y + 1) / 2 * (penalty.penalty - 1)
        score = float(scores[0, token])
        warped[0, token] = score / factor if score > 0 else score * factor
    return warped


penalties = st.builds(
    RepetitionPenaltyParams,
    penalty=st.floats(0.2, 4),
    range_tokens=st.none() | st.integers(1, 12),
    slope=st.none() | st.floats(0.1, 8),
    include_preamble=st.booleans(),
    include_generated=st.sampled_from(IncludeGenerated),
    truncate_to_input=st.booleans(),
)
tokens = st.lists(st.integers(0, N_VOCAB - 1), max_size=10)


@st.composite
def rows(draw: st.DrawFn) -> SamplingRow:
    input_ids = draw(tokens)
    n_preamble = draw(st.integers(0, len(input_ids)))
    override = draw(st.none() | tokens.filter(bool).map(tuple))
    return generate(make_row(draw(penalties), input_ids, n_preamble, override), *draw(tokens))


@pytest.mark.parametrize("record", penalty_records(), ids=lambda record: f"{record['id']}")
def test_penalty_gives_the_table_values_step_by_step(record: dict[str, Any]):
    row = row_of_record(record)
    scores = torch.tensor([record["scores"]])

    for step in record["steps"]:
        generate(row, *step["input_ids"][len(row.input_ids) + row.step :])
        warped = penalise(scores, [row])

        torch.testing.assert_close(warped[0], torch.tensor(step["out"]), atol=1e-5, rtol=0)


def test_positive_scores_are_divided_and_others_multiplied():
    row = make_row(RepetitionPenaltyParams(penalty=2.0), [0, 1, 2, 3])
    scores = torch.tensor([[3.0, -3.0, 0.0, -math.inf, 5.0]])

    warped = penalise(scores, [row])

    assert warped.tolist() == [[1.5, -6.0, 0.0, -math.inf, 5.0]]


def test_slope_of_one_rises_in_a_line_and_the_newest_occurrence_counts():
    row = make_row(RepetitionPenaltyParams(penalty=3.0, slope=1.0), [4, 1, 4, 2, 1])
    scores = torch.full((1, 6), 6.0)

    warped = penalise(scores, [row])

    torch.testing.assert_close(warped, torch.tensor([[6.0, 2.0, 2.4, 6.0, 3.0, 6.0]]))


@pytest.mark.parametrize("penalty", [None, RepetitionPenaltyParams(penalty=1.0, slope=2.0)])
def test_penalty_that_is_off_or_one_changes_nothing(penalty: RepetitionPenaltyParams | None):
    row = make_row(penalty)
    scores = torch.randn(1, N_VOCAB, generator=torch.Generator().manual_seed(1))

    warped = penalise(scores, [row])

    assert torch.equal(warped, scores)


def test_penalty_that_is_off_has_no_text_and_no_range():
    row = generate(make_row(None), 20)

    report = (penalised_tokens(row, 1), penalty_range(row, 1))

    assert report == ([], 0)


def test_penalty_of_one_is_reported_like_any_other():
    row = make_row(RepetitionPenaltyParams(penalty=1.0))

    report = (penalised_tokens(row, 0), penalty_range(row, 0))

    assert report == (INPUT, 8)


def test_expand_keeps_its_range_when_the_preamble_is_excluded():
    mode = IncludeGenerated.EXPAND
    penalty = RepetitionPenaltyParams(penalty=2.0, range_tokens=5, include_generated=mode)
    row = generate(make_row(penalty, n_preamble=3), 20, 21)

    windows = [penalised_tokens(row, n) for n in range(3)]

    assert windows == [INPUT[3:], [*INPUT[3:], 20], [*INPUT[3:], 20, 21]]
    assert [penalty_range(row, n) for n in range(3)] == [5, 6, 7]
    assert changed(row) == [*INPUT[3:], 20, 21]


def test_ignore_never_penalises_a_generated_token_when_the_preamble_is_excluded():
    mode = IncludeGenerated.IGNORE
    penalty = RepetitionPenaltyParams(penalty=2.0, range_tokens=4, include_generated=mode)
    row = generate(make_row(penalty, n_preamble=3), 20, 21)

    window = penalised_tokens(row, 2)

    assert window == INPUT[4:]
    assert changed(row) == INPUT[4:]


def test_override_stands_for_the_prompt_and_generated_tokens_follow_it():
    penalty = RepetitionPenaltyParams(penalty=2.0, range_tokens=4, prompt="x")
    row = generate(make_row(penalty, n_preamble=3, override=(24, 25, 26, 27)), 20, 21)

    windows = [penalised_tokens(row, n) for n in range(3)]

    assert windows == [[24, 25, 26, 27], [25, 26, 27, 20], [26, 27, 20, 21]]
    assert changed(row) == [20, 21, 26, 27]


def test_override_leaves_an_included_preamble_in():
    penalty = RepetitionPenaltyParams(penalty=2.0, include_preamble=True, prompt="x")
    row = make_row(penalty, n_preamble=3, override=(24, 25))

    window = penalised_tokens(row, 0)

    assert window == [3, 5, 7, 24, 25]


def test_excluded_preamble_without_prompt_is_never_penalised():
    row = generate(make_row(RepetitionPenaltyParams(penalty=2.0), n_preamble=8), 20, 21)

    report = (penalised_tokens(row, 2), penalty_range(row, 2))

    assert report == ([], 0)
    assert changed(row) == []


@pytest.mark.parametrize(
    ("mode", "ranges", "last"),
    [
        (IncludeGenerated.SLIDE, [8, 8, 8], [*INPUT[2:], 20, 21]),
        (IncludeGenerated.EXPAND, [8, 9, 10], [*INPUT, 20, 21]),
        (IncludeGenerated.IGNORE, [8, 8, 8], INPUT),
    ],
)
def test_truncate_to_input_limits_the_range_to_the_input(
    mode: IncludeGenerated, ranges: list[int], last: list[int]
):
    penalty = RepetitionPenaltyParams(
        penalty=2.0, range_tokens=64, include_generated=mode, truncate_to_input=True
    )
    row = generate(make_row(penalty), 20, 21)

    found = [penalty_range(row, n) for n in range(3)]

    assert found == ranges
    assert penalised_tokens(row, 2) == last


def test_tokens_of_an_earlier_step_are_reported_after_later_ones_were_made():
    penalty = RepetitionPenaltyParams(penalty=2.0, range_tokens=3)
    row = generate(make_row(penalty), *range(20, 30))

    windows = [penalised_tokens(row, 0), penalised_tokens(row, 9)]

    assert windows == [[13, 15, 17], [26, 27, 28]]


def test_range_far_beyond_the_text_spans_the_curve():
    penalty = RepetitionPenaltyParams(penalty=3.0, range_tokens=10**30, slope=1.0)
    row = make_row(penalty, [0, 1])

    warped = penalise(torch.full((1, 3), 6.0), [row])

    torch.testing.assert_close(warped, torch.tensor([[2.0, 2.0, 6.0]]))


@pytest.mark.parametrize("penalty", [1e-300, 1e300])
def test_extreme_penalty_leaves_scores_finite(penalty: float):
    row = make_row(RepetitionPenaltyParams(penalty=penalty, slope=2.0))
    scores = torch.randn(1, N_VOCAB, generator=torch.Generator().manual_seed(1))

    warped = penalise(scores, [row])

    assert warped.isfinite().all()


@given(rows(), st.integers(0, 1000))
def test_penalty_is_what_its_definition_says(row: SamplingRow, seed: int):
    scores = torch.randn(1, N_VOCAB, generator=torch.Generator().manual_seed(seed))

    warped = penalise(scores, [row])

    torch.testing.assert_close(warped, expected_penalty(scores, row), atol=1e-5, rtol=1e-5)


@given(st.lists(rows() | st.just(make_row(None)), min_size=1, max_size=4), st.integers(0, 1000))
def test_batch_equals_its_rows_one_by_one(batch: list[SamplingRow], seed: int):
    scores = torch.randn(len(batch), N_VOCAB, generator=torch.Generator().manual_seed(seed))

    together = penalise(scores, batch)

    alone = [penalise(scores[i : i + 1], [row]) for i, row in enumerate(batch)]
    assert torch.equal(together, torch.cat(alone))
