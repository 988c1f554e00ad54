"""Which tokens may not come next, as -inf in their scores, before any warper."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from neodim_sampling.row import SamplingRow


def constrain(scores: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """Ban the tokens that a row's constraints forbid at its next step.

    Those are tokens that would repeat an n-gram or complete a banned sequence (which may begin in
    the prompt), tokens banned as the first one, all but the whitelist or those that go on with an
    option, ends of text (always as the first token unless the row can be empty, below its least
    number of tokens, throughout unless it can stop early), tokens that were chosen at this step
    and turned down, and ids beyond the vocabulary.

    Args:
        scores: [B, V] float, left alone.
        rows: B rows.

    Returns:
        [B, V] of the same type; `scores` itself when nothing is banned. A row may have no finite
        score left.
    """
    banned = [_banned_ids(row) for row in rows]
    allowed_ids = [_allowed_ids(row) for row in rows]
    held = [i for i, ids in enumerate(allowed_ids) if ids is not None]
    smallest = min(row.settings.n_vocab for row in rows)
    if not held and not any(map(len, banned)) and smallest >= scores.shape[-1]:
        return scores
    out = scores.clone()
    if smallest < scores.shape[-1]:
        _ban_padding(out, rows, smallest)
    if held:
        allowed = _places([ids for ids in allowed_ids if ids is not None], held, out)
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


def _allowed_ids(row: SamplingRow) -> Tensor | None:
    """The only ids that may come next, as far as they are listed, int64 on the CPU; None = any."""
    if row.allowed is None and row.allowed_first is None and row.options is None:
        return None
    parts = [] if row.allowed is None else [row.allowed]
    if row.allowed_first is not None and row.step == 0:
        parts.append(row.allowed_first)
    if row.options is not None:
        ids, is_whole = row.options.continuations()
        ends = row.settings.constraints.eos_ids if is_whole else ()
        parts.append(torch.tensor([*ids, *ends], dtype=torch.int64))
    if len(parts) < 2:
        return parts[0] if parts else None
    common = set.intersection(*(set(part.tolist()) for part in parts))
    return torch.tensor(sorted(common), dtype=torch.int64)


def _banned_ids(row: SamplingRow) -> Tensor:
    """Ids that may not come next, int64 on the CPU; may repeat."""
    parts = [row.banned]
    if row.step == 0:
        parts.append(row.banned_first)
    if row.step < row.settings.constraints.min_new_tokens:
        parts.append(row.banned_early)
    if row.ruled_out:
        parts.append(torch.tensor(row.ruled_out, dtype=torch.int64))
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
