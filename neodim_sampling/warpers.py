"""The warpers that look at scores alone: each keeps some tokens, or rescales them all.

Every function takes [B, V] scores, float32 with -inf for impossible tokens, and leaves them alone;
`value` is [B], one parameter per row, in the ranges of `WarperParams` (best float64 and on the
CPU, where reading it costs no wait). At least one token of a row that had one survives.

Probabilities are summed as 64-bit integers, the most likely token having 2^44. Such sums are the
same in any order, so that a row gets the same result alone, in any batch and on any device, and
equal shares (ten tokens of 0.1 each) add up as on paper. Enough for 2^19 - 1 tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

MASS_BITS = 44
_UNIT = 2.0**MASS_BITS
_ENTROPY_UNIT = 2.0**52
_LARGEST_SCORE = 1e36
_N_VERY_BEST = 1024
_Kept = Callable[[Tensor, Tensor], Tensor]


def masses(scores: Tensor) -> Tensor:
    """Probabilities up to a factor: exp(score - best score) in units of 2^-44.

    Args:
        scores: [B, V] float, -inf for impossible tokens.

    Returns:
        [B, V] int64; 2^44 for the best token, 0 for impossible ones and all of a row without any
        finite score.
    """
    return _shares(scores).mul_(_UNIT).long()


def temperature(scores: Tensor, value: Tensor) -> Tensor:
    """Divide the scores by a temperature > 0.

    A divisor so small that scores would leave the range of float32 is replaced by the smallest
    that leaves them in it; all probability is with the best token either way.
    """
    sizes = scores.masked_fill(scores == -torch.inf, 0).abs().amax(-1)
    smallest = (sizes / _LARGEST_SCORE).clamp(min=1 / _LARGEST_SCORE)
    divisor = value.clamp(max=_LARGEST_SCORE).to(scores).maximum(smallest)
    return scores / divisor[:, None]


def top_k(scores: Tensor, value: Tensor) -> Tensor:
    """Keep tokens whose score reaches that of the k-th best, ties included (arXiv:1805.04833)."""
    k = value.clamp(max=scores.shape[-1]).long()
    best = scores.topk(int(k.max()), dim=-1).values
    kth = best.gather(-1, (k - 1).to(scores.device)[:, None])
    return scores.masked_fill(scores < kth, -torch.inf)


def top_p(scores: Tensor, value: Tensor) -> Tensor:
    """Keep the fewest best tokens whose probabilities reach p (arXiv:1904.09751, 3.1).

    Among tokens of equal score at the limit, those of lower id are kept.
    """
    target = value.to(scores.device, torch.float64) * masses(scores).sum(-1)
    return _keep(_without_far_tail(scores, target), target, _in_nucleus)


def typical(scores: Tensor, value: Tensor) -> Tensor:
    """Keep the tokens nearest to the entropy until they reach a mass (arXiv:2202.00666, 3.3).

    Tokens as near as the last one kept are kept too.
    """
    return _keep(scores, value, _is_typical)


def tfs(scores: Tensor, value: Tensor) -> Tensor:
    """Cut the tail where probabilities, best first, stop curving (tail-free sampling, trentbrick).

    The second differences of the ordered probabilities are normalised and summed; a token goes
    when the sum before it exceeds the threshold. The first is always kept, the last always goes.
    """
    return _keep(scores, value, _before_tail)


def top_a(scores: Tensor, value: Tensor) -> Tensor:
    """Drop tokens less likely than a times the square of the highest probability (BlinkDL)."""
    shares = _shares(scores)
    highest = _UNIT / (shares * _UNIT).long().sum(-1, keepdim=True).double()
    limit = value.to(scores.device, torch.float64)[:, None] * highest
    return scores.masked_fill(shares < limit, -torch.inf)


def _shares(scores: Tensor) -> Tensor:
    """Each probability as a share of the row's highest, float64; 0 throughout an empty row."""
    best = scores.amax(-1, keepdim=True).double()
    # In place because fresh pages for some megabytes take longer than the arithmetic.
    return scores.to(torch.float64, copy=True).sub_(best.where(best.isfinite(), 0.0)).exp_()


def _without_far_tail(scores: Tensor, target: Tensor) -> Tensor:
    """Ban tokens beyond the very best where those reach the target mass, to sort fewer."""
    if scores.device.type != "cpu" or _most_live(scores) <= _N_VERY_BEST:
        return scores
    best = scores.topk(_N_VERY_BEST, dim=-1).values
    limit = best[:, -1:]
    above = masses(best).masked_fill(best <= limit, 0).sum(-1)
    return scores.masked_fill((scores <= limit) & (above >= target)[:, None], -torch.inf)


def _keep(scores: Tensor, value: Tensor, kept: _Kept) -> Tensor:
    """Ban what `kept(scores, value)`, a [B, W] mask, leaves out, looking at live tokens only."""
    value = value.to(scores.device, torch.float64)[:, None]
    width = scores.shape[-1]
    if scores.device.type == "cpu":
        # A sort of the vocabulary takes milliseconds on a CPU; elsewhere counting would wait.
        # Two dead tokens stay, for the differences that tail-free sampling takes at the end.
        width = min(width, 2 + _most_live(scores))
    if width > scores.shape[-1] // 2:
        return scores.masked_fill(~kept(scores, value), -torch.inf)
    ids = scores.topk(width, dim=-1).indices.sort(dim=-1).values
    live = scores.gather(-1, ids)
    live = live.masked_fill(~kept(live, value), -torch.inf)
    return torch.full_like(scores, -torch.inf).scatter(-1, ids, live)


def _most_live(scores: Tensor) -> int:
    """Number of tokens with a finite score in the row that has most; waits for the device."""
    return int((scores > -torch.inf).sum(-1).max())


def _in_nucleus(scores: Tensor, target: Tensor) -> Tensor:
    ordered, order = scores.sort(dim=-1, descending=True, stable=True)
    mass = masses(ordered)
    up_to = mass.cumsum(-1)
    kept = (up_to - mass).double() < target
    return kept.scatter(-1, order, kept)


def _is_typical(scores: Tensor, value: Tensor) -> Tensor:
    mass = masses(scores)
    total = mass.sum(-1, keepdim=True).double()
    best = scores.amax(-1, keepdim=True).double()
    surprise = best - scores.double() + (total / _UNIT).log()
    parts = (mass.double() / total * surprise).where(mass > 0, 0.0)
    entropy = (parts * _ENTROPY_UNIT).long().sum(-1, keepdim=True).double() / _ENTROPY_UNIT
    distance = (surprise - entropy).abs()
    ordered, order = distance.sort(dim=-1, stable=True)
    up_to = mass.gather(-1, order).cumsum(-1).double()
    # The last sum is the total, so the count is a valid place even for a mass of almost 1.
    last = (up_to < value * total).sum(-1, keepdim=True)
    return distance <= ordered.gather(-1, last)


def _before_tail(scores: Tensor, value: Tensor) -> Tensor:
    ordered, order = scores.sort(dim=-1, descending=True, stable=True)
    curving = masses(ordered).diff(n=2).abs().cumsum(-1).double()
    kept = torch.zeros_like(scores, dtype=torch.bool)
    kept[:, 0] = True
    kept[:, 1:-1] = curving <= value * curving[:, -1:]
    return kept.scatter(-1, order, kept)
