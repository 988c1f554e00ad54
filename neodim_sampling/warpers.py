"""The warpers that look at scores alone: one rescales them all, the filters keep some tokens.

Probabilities are summed as 64-bit integers, the most likely token having 2^44. Such sums are the
same in any order, so that a row gets the same result alone, in any batch and on any device, and
equal shares (ten tokens of 0.1 each) add up as on paper. Enough for 2^19 - 1 tokens.

A filter is a function of the best scores of B rows in order, and of `value`, [B, 1] float64, its
parameter for each row in the ranges of `WarperParams`. It returns [C, B, K] bool: the scores kept
in each of the extreme cases that the tokens left out allow for. All of them lie side by side. It
need not be right about scores as bad as the worst one here, whose equals may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from neodim_sampling.ordered import MASS_UNIT, Ordered, masses, shares

_LARGEST_SCORE = 1e36


def temperature_(scores: Tensor, value: Tensor) -> None:
    """Divide the scores by a temperature > 0.

    A divisor so small that the best score would leave the range of float32 is replaced by the
    smallest that leaves it in; all probability is with the best token either way, and a token
    whose own score leaves the range becomes impossible.

    Args:
        scores: [B, V] float32 in any order, changed in place.
        value: [B] float64.
    """
    best = scores.amax(-1).abs()
    smallest = (best.where(best.isfinite(), 0) / _LARGEST_SCORE).clamp(min=1 / _LARGEST_SCORE)
    divisor = value.clamp(max=_LARGEST_SCORE).to(scores).maximum(smallest)
    scores.div_(divisor[:, None])


def top_k(best: Ordered, value: Tensor) -> Tensor:
    """Keep tokens whose score reaches that of the k-th best, ties included (arXiv:1805.04833)."""
    k = value.clamp(max=best.scores.shape[-1]).long()
    return (best.scores >= best.scores.gather(-1, k - 1))[None]


def top_p(best: Ordered, value: Tensor) -> Tensor:
    """Keep the fewest best tokens whose probabilities reach p (arXiv:1904.09751, 3.1)."""
    mass = masses(best.scores)
    return (mass.cumsum(-1) - mass).double() < value * best.total(mass)


def typical(best: Ordered, value: Tensor) -> Tensor:
    """Keep the tokens nearest to the entropy until they reach a mass (arXiv:2202.00666, 3.3).

    Tokens as near as the last one kept are kept too. Distances are those of scores from their mean
    by probability, which is the same thing. Both ends of what is kept move one way when the mean
    does, and apart when the mass grows, so that the four corners cover all that lies between.
    """
    mass = masses(best.scores)
    drops = best.scores[:, :1].double() - best.scores.double()
    distance = (drops - best.drop(mass, drops)).abs()
    ordered, order = distance.sort(dim=-1, stable=True)
    up_to = mass.expand_as(order).gather(-1, order).cumsum(-1).double()
    target = (value * best.total(mass))[:, None]
    n_below = (up_to < target).sum(-1, keepdim=True).clamp(max=order.shape[-1] - 1)
    farthest = ordered.expand(*n_below.shape[:-1], -1).gather(-1, n_below)
    return (distance <= farthest).flatten(0, 1)


def tfs(best: Ordered, value: Tensor) -> Tensor:
    """Cut the tail where probabilities, best first, stop curving (tail-free sampling, trentbrick).

    The second differences of the ordered probabilities are normalised and summed; a token goes
    when the sum before it exceeds the threshold. The first is always kept, the last always goes.
    """
    mass = masses(best.scores)
    curving = mass.diff(n=2).abs().cumsum(-1)
    total = curving[None, :, -1:]
    if not best.is_whole:
        # Falls to come are >= 0 and add up to the worst mass at most, and twice at most to curving.
        worst = mass[:, -1:]
        fall = mass[:, -2:-1] - worst
        total = total + torch.stack(((fall - worst).clamp(min=0), fall + 2 * worst))
    kept = torch.empty(len(total), *mass.shape, dtype=torch.bool, device=mass.device)
    kept[..., 1:-1] = curving.double() <= value * total.double()
    kept[..., -1] = False if best.is_whole else kept[..., -2]
    kept[..., 0] = True
    return kept


def top_a(best: Ordered, value: Tensor) -> Tensor:
    """Drop tokens less likely than a times the square of the highest probability (BlinkDL)."""
    share = shares(best.scores)
    return share >= value * (MASS_UNIT / best.total((share * MASS_UNIT).long()))


def min_p(best: Ordered, value: Tensor) -> Tensor:
    """Keep tokens that have a share of the highest probability (arXiv:2407.01082, 3.2)."""
    return (shares(best.scores) >= value)[None]


FILTERS: Mapping[str, Callable[[Ordered, Tensor], Tensor]] = {
    "top_k": top_k,
    "top_p": top_p,
    "typical": typical,
    "tfs": tfs,
    "top_a": top_a,
    "min_p": min_p,
}
