"""Repetition penalty: which tokens are under it, and what it does to their scores."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from neodim_sampling.parameters import IncludeGenerated
from neodim_sampling.row import PenaltyText, SamplingRow


def penalty_range(row: SamplingRow, n_generated: int) -> int:
    """Length of the row's penalty window when it had this many generated tokens; 0 = no penalty.

    The window may be longer than the text; the slope curve spans it all the same.
    """
    penalty, text = row.settings.penalty, row.penalty_text
    if penalty is None or text is None:
        return 0
    start = text.n_base if penalty.range_tokens is None else penalty.range_tokens
    if penalty.truncate_to_input:
        start = min(start, text.n_base)
    is_growing = penalty.include_generated is IncludeGenerated.EXPAND
    return start + n_generated if is_growing else start


def penalised_tokens(row: SamplingRow, n_generated: int) -> list[int]:
    """The tokens under penalty, oldest first, when the row had this many generated tokens.

    Args:
        row: the sequence, which may be longer by now.
        n_generated: 0 ... `row.step`.

    Returns:
        Token ids with repetitions; empty when the penalty is off.
    """
    if row.penalty_text is None:
        return []
    start, end = _window(row, row.penalty_text, n_generated)
    return [int(token) for token in row.penalty_text.ids[start:end].tolist()]


def repetition_penalty(scores: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """Make tokens that occurred before less likely (or more, with a penalty below 1).

    The positive score of a token in the row's window is divided by a factor, another multiplied
    (CTRL, arXiv:1909.05858, 4.1, made sign-aware). The factor is the row's penalty, or, with a
    slope, rises along the window from 1 to the penalty; of a token that occurs several times the
    newest occurrence counts. A finite score stays finite.

    Args:
        scores: [B, V] float32, left alone.
        rows: B rows, some of which may have no penalty.

    Returns:
        [B, V] float32; `scores` itself when no row has anything under penalty.
    """
    parts = [(i, *_factors(row)) for i, row in enumerate(rows)]
    ids = torch.cat([part[1] for part in parts])
    if not len(ids):
        return scores
    owners = torch.cat([torch.full_like(part[1], part[0]) for part in parts]).to(scores.device)
    ids = ids.to(scores.device)
    factors = torch.cat([part[2] for part in parts]).to(scores.device)
    old = scores[owners, ids]
    new = torch.where(old > 0, old / factors, old * factors)
    limit = torch.finfo(scores.dtype).max
    new = torch.where(old.isfinite(), new.clamp(-limit, limit), old).to(scores.dtype)
    return scores.index_put((owners, ids), new)


def _window(row: SamplingRow, text: PenaltyText, n_generated: int) -> tuple[int, int]:
    """First place under penalty and the one after the last."""
    penalty = row.settings.penalty
    is_fixed = penalty is not None and penalty.include_generated is IncludeGenerated.IGNORE
    end = text.n_base if is_fixed else text.n_base + n_generated
    return max(0, end - penalty_range(row, n_generated)), end


def _factors(row: SamplingRow) -> tuple[Tensor, Tensor]:
    """Distinct ids under penalty now, int64, and the factor of each, float64; on the CPU."""
    penalty, text = row.settings.penalty, row.penalty_text
    if penalty is None or text is None or penalty.penalty == 1:
        return torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.float64)
    start, end = _window(row, text, row.step)
    places = start + (text.next_same[start:end] >= end).nonzero().flatten()
    length = penalty_range(row, row.step)
    if penalty.slope is None or length <= 1:
        factors = torch.full(places.shape, penalty.penalty, dtype=torch.float64)
    else:
        factors = _curve(end - 1 - places, length, penalty.slope, penalty.penalty)
    return text.ids[places], factors


def _curve(ages: Tensor, length: int, slope: float, penalty: float) -> Tensor:
    """Factors, float64, on the curve from `penalty` (age 0) to 1 (age `length` - 1)."""
    x = 1 - 2 * ages.double() / float(length - 1)
    # The clamp keeps rounding from making the factor of a tiny penalty negative.
    y = (slope * x / (1 + x.abs() * (slope - 1))).clamp(-1, 1)
    return ((1 - y) + (1 + y) * penalty) / 2
