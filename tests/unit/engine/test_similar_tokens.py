"""Tokens whose embeddings are like a controlled one's share in its control, and no others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from neodim_sampling.prompt_items import AttentionParams
from workers.engine.attention_control import AttentionControl
from workers.engine.similar_tokens import SimilarTokens

ROOT = math.sqrt(0.5)
EMBEDDINGS = torch.tensor(
    [
        [2.0, 0.0],  # 0
        [3.0, 3.0],  # 1: cosine with 0 is ROOT
        [0.0, 0.5],  # 2: 0
        [-4.0, 0.0],  # 3: -1
        [0.0, 0.0],  # 4: none
        [9.0, 0.0],  # 5: 1, though it is another token
        [4.0, 3.0],  # 6: 0.8
    ]
)


class Table:
    """Looks up embeddings, and counts how many."""

    def __init__(self) -> None:
        self.n_looked_up = 0

    def __call__(self, ids: Sequence[int]) -> Tensor:
        self.n_looked_up += len(ids)
        return EMBEDDINGS[list(ids)]


def factors(
    sources: Sequence[tuple[int, float]], threshold: float, tokens: Sequence[int]
) -> list[float]:
    return SimilarTokens(sources, threshold, Table()).factors(tokens)


@pytest.mark.parametrize("factor", [0.0, 0.3, 5.0])
def test_factor_is_the_nearer_to_one_the_less_tokens_are_alike(factor: float) -> None:
    found = factors([(0, factor)], 0.0, [0, 5, 6, 1, 2])

    expected = [factor, factor, 1 - (1 - factor) * 0.8, 1 - (1 - factor) * ROOT, 1]
    assert found == pytest.approx(expected, abs=1e-12)
    assert found[0] == pytest.approx(factor, rel=1e-12)


def test_tokens_below_the_threshold_keep_their_attention() -> None:
    assert factors([(0, 0.5)], 0.75, [0, 6, 1, 2, 3]) == pytest.approx([0.5, 0.6, 1, 1, 1])


def test_opposite_and_empty_embeddings_change_nothing_at_any_threshold() -> None:
    assert factors([(0, 0.0)], -1.0, [3, 4]) == [1, 1]
    assert factors([(4, 0.0)], -1.0, [0, 3, 4]) == [1, 1, 0]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        # ln 3 is farther from 0 than ln 0.5, and ln 0.2 than that.
        ([(0, 0.5), (5, 3.0)], 3.0),
        ([(0, 0.2), (5, 3.0)], 0.2),
        ([(0, 1e9), (5, 0.0)], 0.0),
        ([(0, 0.9), (0, 0.4)], 0.4),
    ],
)
def test_of_several_factors_the_farthest_from_one_counts(
    sources: list[tuple[int, float]], expected: float
) -> None:
    assert factors(sources, 0.5, [0]) == pytest.approx([expected])


def test_token_is_compared_once() -> None:
    table = Table()
    similar = SimilarTokens([(0, 0.5), (0, 0.5)], 0.0, table)
    table.n_looked_up = 0

    once = similar.factors([1, 6, 1])

    assert similar.factors([6, 1, 2]) == [once[1], once[0], 1]
    assert table.n_looked_up == 3


def test_explicit_factors_win_over_those_of_likeness() -> None:
    control = AttentionControl({1: 0.5, 3: 0.9}, AttentionParams(threshold=0.0))
    control.learn([0, 0, 5, 0], Table())

    assert control.factors_of(0, [0, 0, 5, 0, 2, 5]) == [0.5, 0.5, 0.5, 0.9, 1, 0.5]
    assert control.factors_of(3, [0, 2]) == [0.9, 1]


def test_first_place_is_that_of_the_first_like_token() -> None:
    control = AttentionControl({3: 0.5}, AttentionParams(threshold=0.9))
    assert control.first_place == 3

    control.learn([2, 5, 1, 0], Table())

    assert control.first_place == 1


def test_control_without_a_threshold_reaches_only_its_own_places() -> None:
    control = AttentionControl({1: 0.5}, AttentionParams())
    table = Table()
    control.learn([0, 0, 0], table)

    assert control.factors_of(0, [0, 0, 0]) == [1, 0.5, 1]
    assert table.n_looked_up == 0


def test_factors_of_one_make_no_control() -> None:
    assert AttentionControl.of({0: 1.0, 2: 1.0}, AttentionParams(threshold=0.0)) is None
    assert AttentionControl.of({}, AttentionParams()) is None
    assert AttentionControl.of({0: 1.0, 2: 0.5}, AttentionParams()) is not None
