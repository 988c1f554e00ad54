"""Repetition penalty: which tokens are under it, and what it does to their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from neodim_sampling.penalty_parameters import IncludeGenerated
from neodim_sampling.row import SamplingRow
from neodim_sampling.text_indexes import PenaltyText

# Text; the row's place in the batch, first place under penalty and the one after the last; length,
# slope and penalty of the curve.
_Window = tuple[PenaltyText, tuple[int, int, int], tuple[float, float, float]]


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
    start, end, _ = _window(row, row.penalty_text, n_generated)
    return [int(token) for token in row.penalty_text.ids[start:end].tolist()]


def repetition_penalty_(scores: Tensor, rows: Sequence[SamplingRow]) -> None:
    """Make tokens that occurred before less likely (or more, with a penalty below 1).

    The positive score of a token in the row's window is divided by a factor, another multiplied
    (CTRL, arXiv:1909.05858, 4.1, made sign-aware). The factor is the row's penalty, or, with a
    slope, rises along the window from 1 to the penalty; of a token that occurs several times the
    newest occurrence counts. A finite score stays finite.

    Args:
        scores: [B, V] float32, changed in place.
        rows: B rows, some of which may have no penalty.
    """
    parts = _factors(rows)
    if parts is None:
        return
    owners, ids, factors = (part.to(scores.device) for part in parts)
    old = scores[owners, ids]
    new = torch.where(old > 0, old / factors, old * factors)
    limit = torch.finfo(scores.dtype).max
    new = torch.where(old.isfinite(), new.clamp(-limit, limit), old).to(scores.dtype)
    scores[owners, ids] = new


def _window(row: SamplingRow, text: PenaltyText, n_generated: int) -> tuple[int, int, int]:
    """First place under penalty, the one after the last, and the length of the curve."""
    penalty, length = row.settings.penalty, penalty_range(row, n_generated)
    is_fixed = penalty is not None and penalty.include_generated is IncludeGenerated.IGNORE
    end = text.n_base if is_fixed else text.n_base + n_generated
    return max(0, end - length), end, length


def _factors(rows: Sequence[SamplingRow]) -> tuple[Tensor, Tensor, Tensor] | None:
    """Rows and ids of the tokens under penalty now, int64, each once, and their factors, float64.

    On the CPU; None when there are none. All windows are laid end to end and handled together.
    """
    windows = [window for i, row in enumerate(rows) if (window := _window_of(row, i))]
    if not windows:
        return None
    ids = torch.cat([text.ids[start:end] for text, (_, start, end), _ in windows])
    next_same = torch.cat([text.next_same[start:end] for text, (_, start, end), _ in windows])
    owners, starts, ends = torch.tensor([place for _, place, _ in windows]).unbind(-1)
    sizes = ends - starts
    owner = torch.arange(len(windows)).repeat_interleave(sizes)
    newest = (next_same >= ends[owner]).nonzero().flatten()
    owner = owner[newest]
    curves = torch.tensor([curve for *_, curve in windows], dtype=torch.float64)
    ages = sizes.cumsum(0)[owner] - 1 - newest
    return owners[owner], ids[newest], _curve(ages, *curves[owner].unbind(-1))


def _window_of(row: SamplingRow, place: int) -> _Window | None:
    penalty, text = row.settings.penalty, row.penalty_text
    if penalty is None or text is None or penalty.penalty == 1:
        return None
    start, end, length = _window(row, text, row.step)
    if start == end:
        return None
    slope = math.inf if penalty.slope is None else penalty.slope
    return text, (place, start, end), (length, slope, penalty.penalty)


def _curve(ages: Tensor, lengths: Tensor, slopes: Tensor, penalties: Tensor) -> Tensor:
    """Factors, float64, on curves from the penalty (age 0) to 1 (age `length` - 1).

    A length of 1 or a slope of infinity is a curve that is flat.
    """
    is_flat = (lengths <= 1) | slopes.isinf()
    if is_flat.all():
        return penalties
    x = 1 - 2 * ages.double() / (lengths - 1)
    # The clamp keeps rounding from making the factor of a tiny penalty negative.
    y = (slopes * x / (1 + x.abs() * (slopes - 1))).clamp(-1, 1)
    return penalties.where(is_flat, ((1 - y) + (1 + y) * penalties) / 2)
