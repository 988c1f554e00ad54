"""Which tokens may not come next, as -inf in their scores, before any warper."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from neodim_sampling.row import SamplingRow


def constrain(scores: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """Ban the tokens that a row's constraints forbid at its next step.

    Those are tokens that would repeat an n-gram or complete a banned sequence (which may begin in
    the prompt), tokens banned as the first one, all but the whitelist, ends of text (always as
    the first token, throughout unless the row can stop early), and ids beyond the vocabulary.

    Args:
        scores: [B, V] float, left alone.
        rows: B rows.

    Returns:
        [B, V] of the same type; `scores` itself when nothing is banned. A row may have no finite
        score left.
    """
    banned = [_banned_ids(row) for row in rows]
    held = [i for i, row in enumerate(rows) if row.allowed is not None]
    smallest = min(row.settings.n_vocab for row in rows)
    if not held and not any(map(len, banned)) and smallest >= scores.shape[-1]:
        return scores
    out = scores.clone()
    if smallest < scores.shape[-1]:
        _ban_padding(out, rows, smallest)
    if held:
        allowed = _places([row.allowed for row in rows if row.allowed is not None], held, out)
        spared = out[allowed]
        out.index_fill_(0, torch.tensor(held, device=out.device), -torch.inf)
        out[allowed] = spared
    out[_places(banned, range(len(rows)), out)] = -torch.inf
    return out


def _places(ids: Sequence[Tensor], rows: Sequence[int], scores: Tensor) -> tuple[Tensor, Tensor]:
    """Index, on the device of the scores, of some ids of each of some rows."""
    n_ids = torch.tensor([len(some) for some in ids])
    owners = torch.tensor(rows).repeat_interleave(n_ids)
    return owners.to(scores.device), torch.cat(tuple(ids)).to(scores.device)


def _banned_ids(row: SamplingRow) -> Tensor:
    """Ids that may not come next, int64 on the CPU; may repeat."""
    parts = [row.banned]
    if row.step == 0:
        parts.append(row.banned_first)
    if row.ngrams is not None:
        parts.append(torch.tensor(list(row.ngrams.completions()), dtype=torch.int64))
    if row.sequences is not None:
        parts.append(torch.tensor(row.sequences.completions(row.tail), dtype=torch.int64))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _ban_padding(scores: Tensor, rows: Sequence[SamplingRow], smallest: int) -> None:
    """Ban, in place, the ids that pad a row's vocabulary; all of them are >= `smallest`."""
    sizes = torch.tensor([row.settings.n_vocab for row in rows]).to(scores.device)
    ids = torch.arange(smallest, scores.shape[-1], device=scores.device)
    scores[:, smallest:].masked_fill_(ids >= sizes[:, None], -torch.inf)
