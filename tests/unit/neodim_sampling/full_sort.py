"""The filters written down plainly: each sorts a whole row, and bans what its definition says."""

from __future__ import annotations

import torch
from torch import Tensor

UNIT = 2.0**44


def full_sort(name: str, scores: Tensor, value: float) -> Tensor:
    """One filter on one row.

    Args:
        name: of the filter.
        scores: [V] float32.
        value: its parameter.
    """
    ordered, order = scores.sort(descending=True, stable=True)
    if not ordered[0].isfinite():
        return scores
    drops = ordered[0].double() - ordered.double()
    mass = ((-drops).exp() * UNIT).long()
    kept = _kept(name, ordered, drops, mass, value)
    return scores.masked_fill(~torch.zeros_like(kept).scatter(0, order, kept), -torch.inf)


def _kept(name: str, ordered: Tensor, drops: Tensor, mass: Tensor, value: float) -> Tensor:
    total = mass.sum().double()
    if name == "top_k":
        return ordered >= ordered[min(int(value), len(ordered)) - 1]
    if name == "top_p":
        return (mass.cumsum(0) - mass).double() < value * total
    if name == "top_a":
        return (-drops).exp() >= value * (UNIT / total)
    if name == "min_p":
        return (-drops).exp() >= value
    if name == "typical":
        mean = (mass.double() / total * drops).where(mass > 0, 0.0).sum()
        distance = (drops - mean).abs()
        near, order = distance.sort()
        n_below = int((mass[order].cumsum(0).double() < value * total).sum())
        return distance <= near[n_below]
    curving = mass.diff(n=2).abs().cumsum(0).double()
    kept = torch.ones_like(ordered, dtype=torch.bool)
    kept[-1] = False
    kept[1:-1] = curving <= value * curving[-1:]
    kept[0] = True
    return kept
