"""Tests of the draw."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from neodim_sampling.parameters import WarperParams
from neodim_sampling.race import BLOCK, race
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints


def make_row(seed: int, sequence: int = 0, step: int = 0) -> SamplingRow:
    settings = RowSettings(
        warpers=WarperParams(), constraints=TokenConstraints(), n_vocab=10 * BLOCK
    )
    return SamplingRow(settings, [], 0, seed, sequence, [0] * step)


def draw(probabilities: Tensor, n: int) -> Tensor:
    rows = [make_row(seed) for seed in range(n)]
    tokens = [
        race(probabilities.log().expand(500, -1), rows[i : i + 500]) for i in range(0, n, 500)
    ]
    return torch.cat(tokens)


def shapes() -> dict[str, Tensor]:
    """Probabilities, up to a factor, over vocabularies of less than a block and of several."""
    ids = torch.arange(3.0 * BLOCK + 17)
    return {
        "flat": torch.ones(2 * BLOCK),
        "one block in part": torch.tensor([0.5, 0.2, 0.0, 0.15, 0.1, 0.05]),
        "steep": 0.98**ids,
        "spread over the blocks": (ids % BLOCK == 7) + 0.25 * (ids % 100 == 3),
        "in the last, short block": (ids >= 3 * BLOCK).float(),
        "two of many": ((ids == 5) + 3 * (ids == 2 * BLOCK)).float(),
    }


@pytest.mark.parametrize("shape", shapes())
def test_tokens_come_as_often_as_their_probabilities_say(shape: str):
    probabilities = shapes()[shape] / shapes()[shape].sum()
    n = 10_000

    tokens = draw(probabilities, n)

    counts = torch.bincount(tokens, minlength=len(probabilities))
    assert counts[probabilities == 0].sum() == 0
    # Neighbours are put together until twenty of each are expected.
    group = (probabilities.double().cumsum(0) * n / 20).clamp(max=n / 20 - 1e-6).long()
    expected = torch.zeros(int(group.max()) + 1, dtype=torch.float64)
    found = expected.clone()
    expected.scatter_add_(0, group, probabilities.double() * n)
    found.scatter_add_(0, group, counts.double())
    possible = expected > 0
    chi_square = float(((found - expected) ** 2 / expected)[possible].sum())
    freedom = int(possible.sum()) - 1
    # Exceeded once in some thousand seeds.
    assert chi_square <= freedom + 4 * math.sqrt(2 * freedom) + 8


@pytest.mark.parametrize("varied", ["seed", "sequence", "step"])
def test_draws_of_neighbouring_places_are_independent(varied: str):
    scores = torch.zeros(1, 4 * BLOCK)
    n = 4000
    rows = [make_row(**{"seed": 1, varied: count}) for count in range(n)]

    tokens = torch.cat([race(scores.expand(500, -1), rows[i : i + 500]) for i in range(0, n, 500)])

    # Both heats: which block, and which part of it.
    for part in (tokens // BLOCK, tokens % BLOCK // (BLOCK // 4)):
        pairs = torch.bincount(part[:-1] * 4 + part[1:], minlength=16).double()
        chi_square = float(((pairs - n / 16) ** 2 / (n / 16)).sum())
        assert chi_square < 38  # 15 degrees of freedom: exceeded once in a thousand seeds.


def test_token_that_comes_instead_of_forbidden_ones_comes_as_often_as_it_would_without_them():
    probabilities = torch.zeros(2 * BLOCK)
    probabilities[[0, 1, BLOCK, BLOCK + 1]] = torch.tensor([0.4, 0.1, 0.3, 0.2])
    n, scores = 10_000, probabilities.log().repeat(10_000, 1)
    rows = [make_row(seed) for seed in range(n)]

    left = torch.arange(n)
    tokens = torch.zeros(n, dtype=torch.int64)
    while len(left):
        tokens[left] = race(scores[left], [rows[i] for i in left])
        left = left[(tokens[left] == 0) | (tokens[left] == BLOCK + 1)]
        for i in left.tolist():
            rows[i].ruled_out.append(int(tokens[i]))
            scores[i, tokens[i]] = -math.inf

    # One in four of those that are left; four standard deviations are 0.017.
    assert float((tokens == 1).double().mean()) == pytest.approx(0.25, abs=0.017)


def test_block_and_place_in_it_are_independent():
    tokens = draw(torch.ones(4 * BLOCK), 8000)

    pairs = torch.bincount(tokens // BLOCK * 4 + tokens % 4, minlength=16).double()

    assert float(((pairs - 500) ** 2 / 500).sum()) < 38


@pytest.mark.parametrize("n_vocab", [1, 5, BLOCK, BLOCK + 1, 7 * BLOCK, 20_011])
def test_row_draws_the_same_alone_and_in_any_batch(n_vocab: int):
    generator = torch.Generator().manual_seed(n_vocab)
    scores = torch.randn(40, n_vocab, generator=generator) * 2
    rows = [make_row(seed, sequence=seed % 3, step=seed % 5) for seed in range(40)]

    together = race(scores, rows)

    alone = [race(scores[i : i + 1], rows[i : i + 1]) for i in range(40)]
    assert torch.equal(torch.cat(alone), together)
    assert torch.equal(race(scores[7:20], rows[7:20]), together[7:20])


def test_impossible_token_never_wins_beside_hardly_possible_ones():
    scores = torch.full((300, 3 * BLOCK), -math.inf)
    scores[:, 10] = 0.0
    scores[:, 2 * BLOCK :: 9] = -103.0
    rows = [make_row(seed) for seed in range(300)]

    tokens = race(scores, rows)

    assert (tokens == 10).all()


def test_more_padding_of_the_vocabulary_changes_no_draw():
    scores = torch.randn(50, 2 * BLOCK, generator=torch.Generator().manual_seed(1))
    rows = [make_row(seed) for seed in range(50)]
    padded = torch.cat([scores, torch.full((50, BLOCK + 3), -math.inf)], -1)

    tokens = race(padded, rows)

    assert torch.equal(tokens, race(scores, rows))
