"""What requests add to the model's scores, before constraints and warpers: biases and penalties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from neodim_sampling.row import SamplingRow


class _Term(NamedTuple):
    """What a stage does to some scores of one row.

    Args:
        ids: [N] int64, each once.
        times: [N] float, how often it is done to each.
        penalty: what is taken off each time.
        is_multiplicative: whether a score is divided by 1 + penalty instead, or multiplied.
    """

    ids: Tensor
    times: Tensor
    penalty: float
    is_multiplicative: bool


def adjust(scores: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """Add each row's biases; then take its presence, frequency and sequence penalties.

    With count[t], how often t is in the row's counted text, a presence penalty p is for tokens
    with count[t] > 0, and a frequency penalty f for each time (OpenAI's reference of
    `frequency_penalty`): score[t] - p - f * count[t]. A sequence penalty is for tokens behind
    which a run of `sequence_min_length` tokens would be in the counted text already.

    A multiplicative penalty divides a positive score by 1 + p, once or count[t] times, and
    multiplies another (CTRL, arXiv:1909.05858, 4.1, made sign-aware; there the factor itself is
    the parameter). It acts on what biases and the penalties before it left. A finite score stays
    finite.

    Args:
        scores: [B, V] float32, left alone.
        rows: B rows; the ids that they bias are below V.

    Returns:
        [B, V] float32; `scores` itself where nothing is to be done.
    """
    adjusted = [
        (place, row)
        for place, row in enumerate(rows)
        if row.bias is not None or row.counted is not None
    ]
    out = scores
    for stage in STAGES if adjusted else ():
        terms = {place: term for place, row in adjusted if (term := stage(row))}
        if terms:
            out = scores.clone() if out is scores else out
            _apply_(out, terms)
    return out


def _bias(row: SamplingRow) -> _Term | None:
    # Taking -1 off as many times as the bias says adds it.
    return None if row.bias is None else _Term(*row.bias, -1.0, False)


def _presence(row: SamplingRow) -> _Term | None:
    counts, wanted = row.counts, row.settings.adjustments
    if counts is None or not counts.length or not wanted.presence_penalty:
        return None
    ids = counts.ids[: counts.length]
    once = torch.ones(counts.length)
    return _Term(ids, once, wanted.presence_penalty, wanted.is_presence_multiplicative)


def _frequency(row: SamplingRow) -> _Term | None:
    counts, wanted = row.counts, row.settings.adjustments
    if counts is None or not counts.length or not wanted.frequency_penalty:
        return None
    ids, times = counts.ids[: counts.length], counts.counts[: counts.length]
    return _Term(ids, times, wanted.frequency_penalty, wanted.is_frequency_multiplicative)


def _sequence(row: SamplingRow) -> _Term | None:
    found = [] if row.repeats is None else list(row.repeats.completions())
    if not found:
        return None
    ids, wanted = torch.tensor(found, dtype=torch.int64), row.settings.adjustments
    once = torch.ones(len(ids))
    return _Term(ids, once, wanted.sequence_penalty, wanted.is_sequence_multiplicative)


STAGES: tuple[Callable[[SamplingRow], _Term | None], ...] = (
    _bias,
    _presence,
    _frequency,
    _sequence,
)
"""What is done to a row's scores, in this order."""


def _apply_(scores: Tensor, terms: dict[int, _Term]) -> None:
    """One stage for all rows that have it, in place; float64, so that it rounds once."""
    ids, times, penalties, is_multiplicative = zip(*terms.values(), strict=True)
    n_ids = torch.tensor([len(each) for each in ids])
    owners = torch.tensor(list(terms)).repeat_interleave(n_ids)
    index = torch.stack((owners, torch.cat(ids))).to(scores.device)
    penalty = torch.tensor(penalties, dtype=torch.float64).repeat_interleave(n_ids)
    many = torch.cat(times).double()
    is_factor = torch.tensor(is_multiplicative).repeat_interleave(n_ids)
    old = scores[index[0], index[1]]
    new = old.double() - (penalty * many).where(~is_factor, 0.0).to(scores.device)
    if any(is_multiplicative):
        # A power beyond the numbers there are would make 0 * infinity of a score.
        factors = (1 + penalty).pow(many).clamp(max=torch.finfo(torch.float64).max)
        factors = factors.where(is_factor, 1.0).to(scores.device)
        new = torch.where(new > 0, new / factors, new * factors)
    limit = torch.finfo(scores.dtype).max
    new = new.clamp(-limit, limit).to(scores.dtype)
    scores[index[0], index[1]] = new.where(old.isfinite(), old)
