"""Filters at work: which tokens of a row they keep, found by sorting as few of them as will do.

A filter says what it would keep of a row's best tokens for the least and for the greatest weight
that the others can have. Where that is the same, it is what a sort of the whole vocabulary would
give; where it is not, the row is looked at again with more of its tokens, all of them at last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from neodim_sampling.ordered import ROWS_AT_ONCE, Bounds, Ordered, bound
from neodim_sampling.warpers import FILTERS

Stage = tuple[str, Tensor]
_WIDTHS = (128, 2048)


class Span(NamedTuple):
    """What is kept of each row: the tokens between two scores.

    Args:
        highest: [B, 1] float32; +inf = the best token is kept.
        lowest: [B, 1] float32; +inf = no token is kept.
        n_kept: [B, 1] int64; where more tokens lie between, those with the lowest score and the
            highest ids are too many.
    """

    highest: Tensor
    lowest: Tensor
    n_kept: Tensor


def keep_(scores: Tensor, filters: Sequence[Stage], widths: Sequence[int] = _WIDTHS) -> None:
    """Ban all tokens but those that filters keep, one filter after the other.

    Args:
        scores: [B, V] float32, -inf for impossible tokens, changed in place; at least one token of
            a row that had one survives.
        filters: >= 1, the name of each and its parameter for each row, [B] float64.
        widths: numbers of best tokens to look at before all, >= 3, ascending.
    """
    # Sorting takes longer than some models on a CPU; elsewhere, asking what is decided would wait.
    if scores.device.type == "cpu":
        _cut_(scores, _span(scores, filters, [n for n in widths if n < scores.shape[-1]]))
    else:
        keep_by_sort_(scores, filters)


def keep_by_sort_(scores: Tensor, filters: Sequence[Stage]) -> None:
    """The same as `keep_`, by sorting all of each row; never waits for the device."""
    best = Ordered(scores.sort(dim=-1, descending=True).values)
    span, _ = _run(best, [(name, value.to(scores.device)) for name, value in filters])
    is_kept = (scores > span.lowest) & (scores <= span.highest)
    is_lowest = scores == span.lowest
    n_lowest = span.n_kept - is_kept.sum(-1, keepdim=True)
    is_kept |= is_lowest & (is_lowest.cumsum(-1) <= n_lowest)
    scores.masked_fill_(~is_kept, -torch.inf)


def _span(scores: Tensor, filters: Sequence[Stage], widths: Sequence[int]) -> Span:
    n_rows, n_vocab = scores.shape
    span = Span(torch.empty(n_rows, 1), torch.empty(n_rows, 1), torch.empty(n_rows, 1).long())
    rows = torch.arange(n_rows)
    if widths:
        bounds = _bounds(scores, filters[0][0])
        ordered = _best(scores, widths[-1])
    for width in widths:
        best = Ordered(ordered[rows, :width], False, None if bounds is None else bounds.of(rows))
        rows = rows[~_fill(span, rows, best, filters)]
        if not len(rows):
            return span
    for some in rows.split(ROWS_AT_ONCE):
        _fill(span, some, Ordered(_best(scores[some], n_vocab)), filters)
    return span


def _bounds(scores: Tensor, name: str) -> Bounds | None:
    """What a filter that comes first has to know of the tokens left out."""
    if name in ("top_k", "tfs", "min_p"):
        return None
    return bound(scores, has_drop=name == "typical")


def _fill(span: Span, rows: Tensor, best: Ordered, filters: Sequence[Stage]) -> Tensor:
    """Write what is kept of some rows into the span of all; returns whether that is right."""
    found, is_decided = _run(best, [(name, value[rows]) for name, value in filters])
    for part, whole in zip(found, span, strict=True):
        whole[rows] = part
    return is_decided


def _run(best: Ordered, filters: Sequence[Stage]) -> tuple[Span, Tensor]:
    """What is left after all filters, and [B] whether that is right.

    What the first filter keeps, if it is right, leaves out no possible token, so that all that
    the next ones need to know is known.
    """
    first, is_decided = best.scores[:, :1], torch.ones_like(best.scores[:, 0], dtype=torch.bool)
    for i, (name, value) in enumerate(filters):
        if i:
            best = best._replace(scores=best.scores.sort(dim=-1, descending=True).values)
        kept = FILTERS[name](best, value[:, None])
        if i == 0 and not best.is_whole:
            is_decided = _is_decided(best, kept)
        best = best._replace(scores=best.scores.where(kept[0], -torch.inf))
    highest, is_left = best.scores.amax(-1, keepdim=True), best.scores > -torch.inf
    lowest = best.scores.where(is_left, torch.inf).amin(-1, keepdim=True)
    highest = highest.where(highest < first, torch.inf)
    return Span(highest, lowest, is_left.sum(-1, keepdim=True)), is_decided


def _is_decided(best: Ordered, kept: Tensor) -> Tensor:
    """[B], whether all cases keep the same, and nothing that may have equals left out."""
    is_unsure = (best.scores == best.limit) & (best.limit > -torch.inf)
    return ((kept == kept[0]) & ~(kept[0] & is_unsure)).all(-1).all(0)


def _best(scores: Tensor, n: int) -> Tensor:
    """The n best scores of each row in order; on the CPU, where NumPy sorts far faster."""
    ordered = np.empty((len(scores), n), dtype=np.float32)
    n_others = scores.shape[-1] - n
    # Row by row because fresh pages for a copy of them all take longer than the work.
    for best, row in zip(ordered, scores.numpy(), strict=True):
        best[:] = np.partition(row, n_others)[n_others:] if n_others else row
    ordered.sort(axis=-1)
    return torch.from_numpy(ordered).flip(-1)


def _cut_(scores: Tensor, span: Span) -> None:
    """Ban what is not kept; on the CPU, where torch takes long over masks of [B, V]."""
    every, lowest = scores.numpy(), span.lowest.numpy()
    is_kept = every >= lowest
    if (span.highest < torch.inf).any():
        is_kept &= every <= span.highest.numpy()
    places = np.flatnonzero(is_kept)
    ends = np.searchsorted(places, np.arange(len(every) + 1) * every.shape[-1])
    n_more = np.diff(ends) - span.n_kept.numpy()[:, 0]
    if n_more.any():
        for i in np.flatnonzero(n_more):
            is_kept[i, np.flatnonzero(every[i] == lowest[i])[-n_more[i] :]] = False
        places = np.flatnonzero(is_kept)
    kept = torch.from_numpy(places)
    values = scores.take(kept)
    scores.fill_(-torch.inf).put_(kept, values)
