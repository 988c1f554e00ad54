"""Tests of what is known of a row from its best scores."""

from __future__ import annotations

import math

import pytest
import torch

from neodim_sampling.ordered import MASS_BITS, MASS_UNIT, bound, masses


def test_masses_give_the_best_token_one_unit():
    scores = torch.tensor([[1.0, 1.0 - math.log(4), -math.inf], [-math.inf] * 3])

    mass = masses(scores)

    assert mass[0, 0] == 2**MASS_BITS
    assert mass[0, 1] / 2**MASS_BITS == pytest.approx(0.25, rel=1e-6)
    assert mass[0, 2] == 0
    assert mass[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 5.0, 30.0, 1e5, 1e30])
@pytest.mark.parametrize("n_vocab", [3, 1000, 150_000])
def test_bounds_are_close_and_hold_the_sums_of_masses(spread: float, n_vocab: int):
    generator = torch.Generator().manual_seed(n_vocab)
    scores = torch.randn(5, n_vocab, generator=generator) * spread + torch.arange(5.0)[:, None]
    scores[:, 1] = -math.inf

    bounds = bound(scores, has_drop=True)

    assert bounds.drop is not None
    ordered = scores.sort(descending=True).values
    mass = masses(ordered).double()
    total = mass.sum(-1, keepdim=True)
    drops = ordered[:, :1].double() - ordered.double()
    drop = (mass * drops).where(mass > 0, 0.0).sum(-1, keepdim=True) / total
    assert ((bounds.total[0] < total) & (total < bounds.total[1])).all()
    assert ((bounds.drop[0] < drop) & (drop < bounds.drop[1])).all()
    assert ((bounds.total[1] - bounds.total[0]) / total < 2**-15).all()
    assert (total >= MASS_UNIT).all()
