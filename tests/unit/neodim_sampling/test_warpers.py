"""Tests of the warpers, alone."""

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

from neodim_sampling.selection import keep_
from neodim_sampling.warpers import FILTERS, temperature_

CASES = Path(__file__).parents[2] / "data" / "warper_cases.jsonl"
NAMES = ("temperature", *FILTERS)


def records() -> list[dict[str, Any]]:
    every = [json.loads(line) for line in CASES.read_text().splitlines()]
    return [record for record in every if record["warper"] in NAMES]


def to_tensor(scores: list[float | None]) -> Tensor:
    return torch.tensor([-math.inf if score is None else score for score in scores])


def apply(name: str, scores: Tensor, values: list[float]) -> Tensor:
    warped, value = scores.clone(), torch.tensor(values, dtype=torch.float64)
    if name == "temperature":
        temperature_(warped, value)
    else:
        keep_(warped, [(name, value)])
    return warped


def kept(name: str, probabilities: list[float], value: float) -> list[int]:
    scores = torch.tensor([probabilities]).log()
    return (apply(name, scores, [value])[0] > -math.inf).nonzero().flatten().tolist()


@st.composite
def batches(draw: st.DrawFn, name: str) -> tuple[Tensor, list[float]]:
    """Scores with ties and bans, at least one token left in each row, and a value for each."""
    n_vocab = draw(st.integers(1, 24))
    n_rows = draw(st.integers(1, 4))
    score = st.sampled_from([-math.inf, -30.0, -1.5, -0.5, 0.0, 0.25, 1.0, 1.0, 2.0, 9.0])
    row = st.lists(score, min_size=n_vocab, max_size=n_vocab).map(with_one_left)
    values = {
        "temperature": st.sampled_from([1e-45, 1e-30, 0.01, 0.7, 1.7, 1e30, 1e300]),
        "top_k": st.integers(1, 30).map(float),
        "tfs": st.floats(0, 1, exclude_min=True),
        "top_a": st.floats(0, 1, exclude_min=True),
        "min_p": st.floats(0, 1, exclude_min=True),
    }.get(name, st.floats(0, 1, exclude_min=True, exclude_max=True))
    scores = torch.tensor([draw(row) for _ in range(n_rows)])
    return scores, [draw(values) for _ in range(n_rows)]


def with_one_left(scores: list[float]) -> list[float]:
    return scores if max(scores) > -math.inf else [*scores[:-1], 0.0]


@pytest.mark.parametrize("record", records(), ids=lambda record: f"{record['id']}")
def test_warper_gives_the_table_values(record: dict[str, Any]):
    (value,) = record["params"].values()

    warped = apply(record["warper"], to_tensor(record["scores"])[None], [value])

    torch.testing.assert_close(warped[0], to_tensor(record["out"]), atol=1e-5, rtol=0)


def test_temperature_divides():
    scores = torch.tensor([[2.0, -1.0, -math.inf]])

    warped = apply("temperature", scores, [0.5])

    assert warped.tolist() == [[4.0, -2.0, -math.inf]]


@pytest.mark.parametrize("value", [1e-45, 1e-30])
@pytest.mark.parametrize("best", [7.0, 0.0, -7.0])
def test_tiny_temperature_leaves_all_probability_to_the_best_tokens(value: float, best: float):
    scores = torch.tensor([[best, best - 1e-3, best, -math.inf, best - 100]])

    warped = apply("temperature", scores, [value])

    assert warped[0, [0, 1, 2, 4]].isfinite().all()
    assert warped.softmax(-1).tolist() == [[0.5, 0.0, 0.5, 0.0, 0.0]]


def test_score_that_a_temperature_takes_out_of_the_range_leaves_the_others_alone():
    scores = torch.tensor([[4.0, 2.0, -3e38]])

    warped = apply("temperature", scores, [0.5])

    assert warped.tolist() == [[8.0, 4.0, -math.inf]]


def test_huge_temperature_makes_the_allowed_tokens_equal():
    scores = torch.tensor([[3.0, -4.0, -math.inf]])

    warped = apply("temperature", scores, [1e300])

    assert warped.softmax(-1).tolist() == [[0.5, 0.5, 0.0]]


@pytest.mark.parametrize(("value", "expected"), [(1, [0, 2]), (2, [0, 2]), (3, [0, 1, 2])])
def test_top_k_keeps_ties_at_the_limit(value: int, expected: list[int]):
    probabilities = [0.4, 0.15, 0.4, 0.05]

    survivors = kept("top_k", probabilities, value)

    assert survivors == expected


def test_top_k_beyond_the_vocabulary_keeps_all():
    probabilities = [0.4, 0.6]

    survivors = kept("top_k", probabilities, 2.0**62)

    assert survivors == [0, 1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.2, [1]), (0.5, [1]), (0.51, [1, 2]), (0.8, [1, 2]), (0.81, [0, 1, 2])],
)
def test_top_p_keeps_the_smallest_set_that_reaches_the_mass(value: float, expected: list[int]):
    probabilities = [0.2, 0.5, 0.3]

    survivors = kept("top_p", probabilities, value)

    assert survivors == expected


@pytest.mark.parametrize("n_kept", range(1, 10))
def test_top_p_splits_equal_shares_exactly(n_kept: int):
    probabilities = [0.1] * 10

    survivors = kept("top_p", probabilities, n_kept / 10)

    assert survivors == list(range(n_kept))


def test_typical_prefers_tokens_near_the_entropy_to_the_likeliest():
    probabilities = [0.6, 0.2, 0.1, 0.1]  # Entropy 1.09; surprises 0.51, 1.61, 2.30, 2.30.

    survivors = [kept("typical", probabilities, value) for value in (0.1, 0.19, 0.21, 0.81)]

    assert survivors == [[1], [1], [0, 1], [0, 1, 2, 3]]


def test_typical_of_a_mass_just_below_one_is_accepted():
    probabilities = [0.1] * 10

    survivors = kept("typical", probabilities, math.nextafter(1, 0))

    assert survivors == list(range(10))


def test_tfs_cuts_where_the_curve_flattens():
    probabilities = [0.5, 0.3, 0.1, 0.06, 0.04]
    # Second differences 0, 0.16, 0.02 of total 0.18: shares up to each 0, 0.889, 1.

    survivors = [kept("tfs", probabilities, value) for value in (0.5, 0.9, 1.0)]

    assert survivors == [[0, 1], [0, 1, 2], [0, 1, 2, 3]]


@pytest.mark.parametrize(("n_tokens", "expected"), [(1, [0]), (2, [0]), (5, [0, 1, 2, 3])])
def test_tfs_removes_the_last_token_alone_when_nothing_curves(n_tokens: int, expected: list[int]):
    probabilities = [1 / n_tokens] * n_tokens

    survivors = kept("tfs", probabilities, 0.5)

    assert survivors == expected


def test_tfs_is_the_same_when_dead_tokens_are_left_out_of_the_sort():
    live = torch.tensor([[3.0, 2.5, 2.5, 1.0, 0.5, 0.1]])
    dead = torch.full((1, 200), -math.inf)

    for value in (0.2, 0.5, 0.7, 0.9, 0.99, 1.0):
        wide = apply("tfs", torch.cat([dead, live, dead], -1), [value])[:, 200:206]
        narrow = apply("tfs", torch.cat([dead[:, :3], live], -1), [value])[:, 3:]

        assert torch.equal(wide, narrow)


@pytest.mark.parametrize(("value", "expected"), [(1.0, [0, 1]), (0.5, [0, 1, 2]), (0.1, [0, 1, 2])])
def test_top_a_drops_tokens_below_a_share_of_the_best_squared(value: float, expected: list[int]):
    probabilities = [0.5, 0.3, 0.2]

    survivors = kept("top_a", probabilities, value)

    assert survivors == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.0, [0]), (0.7, [0]), (0.5, [0, 1]), (0.25, [0, 1, 3]), (0.01, [0, 1, 2, 3])],
)
def test_min_p_drops_tokens_below_a_share_of_the_best(value: float, expected: list[int]):
    probabilities = [0.5, 0.3, 0.05, 0.15]

    survivors = kept("min_p", probabilities, value)

    assert survivors == expected


def test_min_p_of_one_keeps_all_that_are_best():
    assert kept("min_p", [0.4, 0.2, 0.4], 1.0) == [0, 2]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_batch_equals_its_rows_one_by_one(name: str, data: st.DataObject):
    scores, values = data.draw(batches(name))

    together = apply(name, scores, values)

    alone = [apply(name, scores[i : i + 1], values[i : i + 1]) for i in range(len(values))]
    assert torch.equal(together, torch.cat(alone))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_some_token_survives_and_no_banned_one_returns(name: str, data: st.DataObject):
    scores, values = data.draw(batches(name))

    warped = apply(name, scores, values)

    assert warped.isfinite().any(-1).all()
    assert not warped.isnan().any()
    assert (warped[scores == -math.inf] == -math.inf).all()


@pytest.mark.parametrize("name", FILTERS)
@given(data=st.data())
def test_filter_leaves_the_scores_it_keeps_as_they_are(name: str, data: st.DataObject):
    scores, values = data.draw(batches(name))

    warped = apply(name, scores, values)

    survivors = warped > -math.inf
    assert torch.equal(warped[survivors], scores[survivors])


@pytest.mark.parametrize("name", NAMES)
def test_row_without_any_token_stays_empty_beside_others(name: str):
    scores = torch.tensor([[-math.inf] * 3, [1.0, 2.0, 3.0]])

    warped = apply(name, scores, [0.9 if name != "top_k" else 2.0] * 2)

    assert (warped[0] == -math.inf).all()
    assert warped[1].isfinite().any()
