"""A row's best scores in order, and how far the others can matter: what filters decide from."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

MASS_BITS = 44
MASS_UNIT = 2.0**MASS_BITS
_DROP_UNIT = 2.0**52
# Far above what the float32 sums of `bound` are off by, which is some 2^-21 of the result.
_SLACK = 2.0**-17
_FAR = 1e3
ROWS_AT_ONCE = 4
"""Rows of a whole vocabulary that temporary tensors have: memory that stays in use, and in cache.

Fresh pages for some megabytes take longer than the arithmetic on them.
"""


class Bounds(NamedTuple):
    """The least and the greatest value that a row's sums over its whole vocabulary can have.

    Args:
        total: [2, B, 1] float64, sum of all masses.
        drop: [2, B, 1] float64, mean distance of a token's score from the best; None = not needed.
    """

    total: Tensor
    drop: Tensor | None

    def of(self, rows: Tensor) -> Bounds:
        """Those of some rows, by their places."""
        return Bounds(self.total[:, rows], None if self.drop is None else self.drop[:, rows])


class Ordered(NamedTuple):
    """The best scores of some rows.

    Args:
        scores: [B, K] float32, best first, -inf for impossible tokens.
        is_whole: whether K is the whole vocabulary.
        bounds: of the rows; None = not needed, or nothing is left out.
    """

    scores: Tensor
    is_whole: bool = True
    bounds: Bounds | None = None

    @property
    def limit(self) -> Tensor:
        """[B, 1], the best score that a token left out can have; -inf = none of them is possible.

        Of the tokens with just this score some may be left out and others here.
        """
        worst = self.scores[:, -1:]
        return torch.full_like(worst, -torch.inf) if self.is_whole else worst

    def total(self, mass: Tensor) -> Tensor:
        """[C, B, 1] float64: the sum of all masses, or its bounds where it is not known.

        Args:
            mass: [B, K] int64, those of the scores here.
        """
        known = mass.sum(-1, keepdim=True).double()[None]
        return known if self.bounds is None else known.where(self._is_all, self.bounds.total)

    def drop(self, mass: Tensor, drops: Tensor) -> Tensor:
        """[C, B, 1] float64: the mean distance of a score from the best, or its bounds.

        Args:
            mass: [B, K] int64, those of the scores here.
            drops: [B, K] float64, distances of the scores here.
        """
        parts = (mass.double() / mass.sum(-1, keepdim=True) * drops).where(mass > 0, 0.0)
        known = ((parts * _DROP_UNIT).long().sum(-1, keepdim=True).double() / _DROP_UNIT)[None]
        if self.bounds is None or self.bounds.drop is None:
            return known
        return known.where(self._is_all, self.bounds.drop)

    @property
    def _is_all(self) -> Tensor:
        return self.limit == -torch.inf


def bound(scores: Tensor, *, has_drop: bool) -> Bounds:
    """Estimate the sums over whole rows in float32.

    Args:
        scores: [B, V] float32, left alone; what comes out for a row of -inf means nothing.
        has_drop: whether to bound distances as well.
    """
    parts = [_sums(some, has_drop) for some in scores.split(ROWS_AT_ONCE)]
    total, drop = torch.cat(parts, dim=1)
    slack = torch.tensor([-_SLACK, _SLACK], dtype=torch.float64)[:, None, None]
    # The rounding of masses moves the mean of a peaked row by up to 2^-20.
    drops = drop + (drop * 2 + 1) * slack if has_drop else None
    return Bounds((total + total * slack) * MASS_UNIT, drops)


def _sums(scores: Tensor, has_drop: bool) -> Tensor:
    """[2, B, 1] float64: sum of shares, and the mean distance from the best or nothing of note."""
    chances = scores.softmax(-1)
    whole, highest = chances.sum(-1, keepdim=True).double(), chances.amax(-1, keepdim=True)
    drop = whole
    if has_drop:
        drops = (scores.amax(-1, keepdim=True) - scores).clamp_(max=_FAR).mul_(chances)
        drop = drops.sum(-1, keepdim=True) / whole
    return torch.stack((whole / highest, drop))


def masses(scores: Tensor) -> Tensor:
    """Probabilities up to a factor: exp(score - best score) in units of 2^-44.

    Args:
        scores: [B, K] float32, best first, -inf for impossible tokens.

    Returns:
        [B, K] int64; 2^44 for the best token, 0 for impossible ones and all of a row without any
        finite score.
    """
    return shares(scores).mul_(MASS_UNIT).long()


def shares(scores: Tensor) -> Tensor:
    """The same as shares of the row's highest, float64."""
    best = scores[:, :1].double()
    return scores.to(torch.float64, copy=True).sub_(best.where(best.isfinite(), 0.0)).exp_()
