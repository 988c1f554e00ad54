"""What requests add to the model's scores, before constraints and warpers: biases and penalties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from neodim_sampling.row import SamplingRow

# Place of a row in the batch, ids [N] int64, and what is added to their scores [N] float32.
_Term = tuple[int, Tensor, Tensor]


def adjust(scores: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """Add each row's biases, and take its presence and frequency penalties off.

    score[t] + bias[t] - presence * (count[t] > 0) - frequency * count[t], where count[t] says how
    often t was generated (OpenAI's reference of `frequency_penalty`).

    Args:
        scores: [B, V] float32, left alone.
        rows: B rows; biased ids are below V.

    Returns:
        [B, V] float32; `scores` itself where nothing is added.
    """
    terms = [term for place, row in enumerate(rows) for term in _terms(place, row)]
    if not terms:
        return scores
    places, ids, values = zip(*terms, strict=True)
    owners = torch.tensor(places).repeat_interleave(torch.tensor([len(each) for each in ids]))
    index = (owners.to(scores.device), torch.cat(ids).to(scores.device))
    return scores.index_put(index, torch.cat(values).to(scores), accumulate=True)


def _terms(place: int, row: SamplingRow) -> Iterator[_Term]:
    if row.bias is not None:
        yield place, *row.bias
    if row.counts is not None:
        wanted, length = row.settings.adjustments, row.counts.length
        counts = row.counts.counts[:length]
        penalty = wanted.presence_penalty + wanted.frequency_penalty * counts
        yield place, row.counts.ids[:length], -penalty
