"""Tests of the whole way from scores to a token."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neodim_sampling.constraints import constrain
from neodim_sampling.parameters import WarperParams
from neodim_sampling.penalty_parameters import IncludeGenerated, RepetitionPenaltyParams
from neodim_sampling.pipeline import choose, shape_scores
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints

CASES = Path(__file__).parents[2] / "data" / "warper_cases.jsonl"
N_VOCAB = 32


def make_row(
    warpers: WarperParams | None = None,
    penalty: RepetitionPenaltyParams | None = None,
    constraints: TokenConstraints | None = None,
    input_ids: tuple[int, ...] = (),
    generated: tuple[int, ...] = (),
    seed: int = 0,
    sequence: int = 0,
) -> SamplingRow:
    settings = RowSettings(
        warpers=warpers or WarperParams(),
        penalty=penalty,
        constraints=constraints or TokenConstraints(),
        n_vocab=N_VOCAB,
    )
    return SamplingRow(settings, list(input_ids), 0, seed, sequence, list(generated))


def chain_records() -> list[dict[str, Any]]:
    every = [json.loads(line) for line in CASES.read_text().splitlines()]
    return [record for record in every if record["warper"] == "chain"]


def to_tensor(scores: list[float | None]) -> Tensor:
    return torch.tensor([-math.inf if score is None else score for score in scores])


def random_scores(n_rows: int, seed: int) -> Tensor:
    """Scores in steps of a quarter, so that many are equal."""
    scores = torch.randn(n_rows, N_VOCAB, generator=torch.Generator().manual_seed(seed)) * 3
    return (scores * 4).round() / 4


fractions = st.none() | st.floats(0.001, 0.999)
names = st.sampled_from(
    ["repetition_penalty", "temperature", "top_k", "top_p", "typical", "tfs", "top_a", "*"]
)
warper_params = st.builds(
    WarperParams,
    temperature=st.none() | st.sampled_from([1e-45, 1e-30, 0.5, 1.0, 1.7, 1e30]),
    top_k=st.none() | st.integers(1, 40),
    top_p=fractions,
    typical=fractions,
    tfs=fractions | st.just(1.0),
    top_a=fractions | st.just(1.0),
    order=st.lists(names, max_size=5).map(tuple),
)
penalty_params = st.none() | st.builds(
    RepetitionPenaltyParams,
    penalty=st.sampled_from([0.5, 1.0, 1.3, 3.0, 1e30]),
    range_tokens=st.none() | st.integers(1, 12),
    slope=st.none() | st.floats(0.1, 8),
    include_generated=st.sampled_from(IncludeGenerated),
    truncate_to_input=st.booleans(),
)
ids = st.integers(0, N_VOCAB - 1)
constraint_sets = st.builds(
    TokenConstraints,
    allowed_ids=st.none() | st.lists(ids, min_size=1).map(tuple),
    banned_sequences=st.lists(st.lists(ids, min_size=1, max_size=3).map(tuple), max_size=4).map(
        tuple
    ),
    banned_first_ids=st.frozensets(ids, max_size=3),
    no_repeat_ngram_size=st.none() | st.integers(1, 3),
    eos_ids=st.frozensets(st.just(N_VOCAB - 1)),
    can_stop_early=st.booleans(),
)
texts = st.lists(ids, max_size=8).map(tuple)
sampling_rows = st.builds(
    make_row,
    warper_params,
    penalty_params,
    constraint_sets,
    texts,
    texts,
    st.integers(0, 2**63 - 1),
    st.integers(0, 99),
)


@pytest.mark.parametrize("record", chain_records(), ids=lambda record: f"{record['id']}")
def test_chain_gives_the_table_values_after_its_last_warper(record: dict[str, Any]):
    params = dict(record["params"])
    penalty = RepetitionPenaltyParams(penalty=params.pop("repetition_penalty"))
    warpers = WarperParams(order=tuple(params.pop("warpers_order")), **params)
    row = make_row(warpers, penalty, input_ids=tuple(record["input_ids"]))

    shaped = shape_scores(to_tensor(record["scores"])[None], [row])

    expected = to_tensor(record["stages"][-1])
    torch.testing.assert_close(shaped[0], expected, atol=1e-5, rtol=0)


def test_row_with_nothing_set_gets_its_scores_back():
    scores = random_scores(1, 0)

    shaped = shape_scores(scores, [make_row(WarperParams(temperature=1.0))])

    assert shaped is scores


def test_order_decides_whether_the_penalty_sees_a_cut_or_makes_it():
    scores = torch.full((2, N_VOCAB), -9.0)
    scores[:, :2] = torch.tensor([4.0, 3.0])
    penalty = RepetitionPenaltyParams(penalty=2.0)
    rows = [
        make_row(WarperParams(top_k=1, order=order), penalty, input_ids=(0,))
        for order in ((), ("top_k",))
    ]

    tokens = choose(shape_scores(scores, rows), rows).tokens

    assert tokens.tolist() == [1, 0]


@given(st.lists(sampling_rows, min_size=1, max_size=5), st.integers(0, 1000))
def test_batch_equals_its_rows_one_by_one(rows: list[SamplingRow], seed: int):
    scores = random_scores(len(rows), seed)
    before = scores.clone()

    shaped = shape_scores(scores, rows)
    choice = choose(shaped, rows)

    for i, row in enumerate(rows):
        alone = shape_scores(scores[i : i + 1], [row])
        assert torch.equal(alone[0], shaped[i])
        assert choose(alone, [row]).tokens.tolist() == choice.tokens[i : i + 1].tolist()
    assert torch.equal(scores, before)


@given(st.lists(sampling_rows, min_size=1, max_size=5), st.integers(0, 1000))
def test_chosen_token_is_possible_unless_constraints_left_none(rows: list[SamplingRow], seed: int):
    scores = random_scores(len(rows), seed)

    shaped = shape_scores(scores, rows)
    choice = choose(shaped, rows)

    has_token = constrain(scores, rows).isfinite().any(-1)
    chosen = shaped.gather(-1, choice.tokens[:, None])[:, 0]
    assert choice.is_empty.tolist() == (~has_token).tolist()
    assert chosen[has_token].isfinite().all()


def test_batch_of_many_kinds_of_rows_equals_its_rows_one_by_one_in_a_large_vocabulary():
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(16, 30_001, generator=generator) * torch.logspace(-1, 0.8, 16)[:, None]
    penalty = RepetitionPenaltyParams(penalty=1.25, range_tokens=16)
    kinds = [
        WarperParams(temperature=0.6, tfs=0.95),
        WarperParams(temperature=0.6, top_p=0.9),
        WarperParams(typical=0.2, order=("typical", "temperature")),
        WarperParams(temperature=0.6),
        WarperParams(top_k=1),
        WarperParams(top_k=50, top_p=0.9, temperature=2.0, order=("top_k",)),
        WarperParams(),
    ]
    rows = [
        make_row(kinds[i % 7], penalty if i % 3 else None, input_ids=tuple(range(i)), seed=i)
        for i in range(16)
    ]
    for i, row in enumerate(rows):
        row.settings = replace(row.settings, n_vocab=30_001 - i % 2)

    shaped = shape_scores(scores, rows)
    tokens = choose(shaped, rows).tokens

    for i, row in enumerate(rows):
        alone = shape_scores(scores[i : i + 1], [row])
        assert torch.equal(alone[0], shaped[i])
        assert choose(alone, [row]).tokens[0] == tokens[i]


def test_scores_that_are_not_laid_out_row_by_row_are_shaped_alike():
    scores = random_scores(3, 5)
    rows = [make_row(WarperParams(top_p=0.5, temperature=0.9), seed=i) for i in range(3)]

    shaped = shape_scores(scores.T.contiguous().T, rows)

    assert torch.equal(shaped, shape_scores(scores, rows))


def test_half_precision_scores_are_shaped_in_float32():
    scores = random_scores(1, 0).bfloat16()

    shaped = shape_scores(scores, [make_row(WarperParams(temperature=0.7))])

    torch.testing.assert_close(shaped, scores.float() / 0.7)


def test_row_left_with_one_token_always_gets_it():
    scores = torch.full((200, N_VOCAB), -math.inf)
    places = torch.arange(200) % N_VOCAB
    scores[torch.arange(200), places] = -5.0
    rows = [make_row(seed=seed) for seed in range(200)]

    tokens = choose(scores, rows).tokens

    assert torch.equal(tokens, places)


def test_row_without_any_token_is_told_apart():
    scores = torch.stack([torch.full((N_VOCAB,), -math.inf), torch.zeros(N_VOCAB)])

    choice = choose(scores, [make_row(), make_row()])

    assert choice.is_empty.tolist() == [True, False]


def test_draw_is_the_same_for_the_same_seed_sequence_and_step_only():
    scores = torch.zeros(1, N_VOCAB)
    places = [(7, 0, ()), (8, 0, ()), (7, 1, ()), (7, 0, (3,))]
    rows = [make_row(seed=seed, sequence=n, generated=made) for seed, n, made in places * 2]

    tokens = choose(scores.expand(8, -1), rows).tokens.tolist()

    assert tokens[:4] == tokens[4:]
    assert len(set(tokens)) > 1


def test_draw_hardly_ever_changes_with_the_last_bits_of_flat_scores():
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(1, 20_000, generator=generator)
    noise = torch.randn(500, 20_000, generator=generator) * 1e-3
    rows = [make_row(seed=seed) for seed in range(500)]

    clean = choose(scores.expand(500, -1), rows).tokens
    noisy = choose(scores + noise, rows).tokens

    assert len(set(clean.tolist())) > 400
    assert int((clean != noisy).sum()) < 10


def test_greedy_row_takes_the_best_token_beside_drawn_ones():
    scores = random_scores(4, 3)
    greedy, drawn = make_row(WarperParams(top_k=1)), make_row()

    tokens = choose(scores, [greedy, drawn, greedy, drawn]).tokens.tolist()

    best = scores.argmax(-1).tolist()
    assert (tokens[0], tokens[2]) == (best[0], best[2])


def test_draws_come_as_often_as_the_probabilities_say():
    probabilities = torch.tensor([0.5, 0.2, 0.0, 0.15, 0.1, 0.05])
    n = 10_000
    rows = [make_row(seed=seed) for seed in range(n)]

    tokens = choose(probabilities.log().expand(n, -1), rows).tokens

    counts = torch.bincount(tokens, minlength=6)
    expected = probabilities * n
    possible = expected > 0
    chi_square = float(((counts - expected) ** 2 / expected)[possible].sum())
    assert counts[2] == 0
    assert chi_square < 20  # Four degrees of freedom: exceeded once in two thousand.
