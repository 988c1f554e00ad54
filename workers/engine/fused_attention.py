"""Attention of the fused path: where new keys and values go, and which ones a query sees.

One object per forward pass, the same for all layers. The query heads that share a key head are
laid out as rows of queries, so that keys are read once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from workers.engine.scaled_scores import attend
from workers.engine.slot_cache import SlotCache, SlotLayer
from workers.engine.text_model import Run

KEYS_PER_CALL = 1024
"""Keys that can be read in the time that one more call of the attention kernel takes."""


class AttentionPass(Protocol):
    """The attention of one forward pass over N tokens."""

    positions: Tensor
    """[N] int64, place of each token in its text."""

    def attend(self, layer: SlotLayer, qkv: Tensor) -> Tensor:
        """Store the tokens' keys and values in a layer, and attend to what each may see.

        Args:
            layer: the layer's rows.
            qkv: [N, H + 2 K, D], each token's queries, keys and values.

        Returns:
            [N, H D].
        """
        ...


class RunsAttention:
    """Single tokens of several rows, and behind them longer runs of others.

    Args:
        cache: where the rows are.
        singles: runs of one token, ascending by row.
        longer: the other runs.
    """

    def __init__(self, cache: SlotCache, singles: Sequence[Run], longer: Sequence[Run]) -> None:
        runs = [*singles, *longer]
        places = [place for run in runs for place in range(run.start, run.stop)]
        self.positions = torch.tensor(places, device=cache.device)
        slots = torch.tensor([run.slot for run in singles], dtype=torch.int64, device=cache.device)
        self._single_places = cache.places(slots, self.positions[: len(singles)])
        self._n_singles = len(singles)
        self._parts: list[_Span | _LongRun] = [
            *(_Span(cache, singles[first:last]) for first, last in group_nearby(singles)),
            *(_LongRun(cache, run) for run in longer),
        ]

    def attend(self, layer: SlotLayer, qkv: Tensor) -> Tensor:
        """Each token's queries see its row up to itself."""
        n_heads = qkv.shape[1] - 2 * layer.n_heads
        if self._n_singles:
            new = qkv[: self._n_singles, n_heads:]
            layer.flat.index_copy_(0, self._single_places, new.reshape(-1, new.shape[2]))
        first = 0
        seen: list[Tensor] = []
        for part in self._parts:
            seen.append(part.attend(layer, qkv[first : first + part.n_tokens], n_heads))
            first += part.n_tokens
        return seen[0] if len(seen) == 1 else torch.cat(seen)


class _Span:
    """Single tokens of rows near each other, whose attention is one call over all rows between.

    A row between them that has no token asks what the first one asks, in vain.
    """

    def __init__(self, cache: SlotCache, runs: Sequence[Run]) -> None:
        self.n_tokens = len(runs)
        first = runs[0].slot
        n_rows = runs[-1].slot + 1 - first
        self._rows = slice(first, first + n_rows)
        self._n_keys = max(run.stop for run in runs)
        # Whatever the factors of a row between them, they are nobody's business here.
        slots = [cache.padding_slot] * n_rows
        starts = [0] * n_rows
        askers = [0] * n_rows
        for token, run in enumerate(runs):
            place = run.slot - first
            slots[place], starts[place], askers[place] = run.slot, run.start, token
        self._mask = cache.next_token_mask(slots, starts)
        self._scales = cache.factors.scales(slots, self._n_keys)
        self._askers: Tensor | None = None
        if n_rows > len(runs):
            self._askers = torch.tensor(askers, device=cache.device)
            places = [run.slot - first for run in runs]
            self._places = torch.tensor(places, device=cache.device)

    def attend(self, layer: SlotLayer, qkv: Tensor, n_heads: int) -> Tensor:
        queries = qkv[:, :n_heads]
        if self._askers is not None:
            queries = queries.index_select(0, self._askers)
        seen = attend(
            queries.unflatten(1, (layer.n_heads, -1)),
            layer.row_keys[self._rows, :, : self._n_keys],
            layer.row_values[self._rows, :, : self._n_keys],
            self._mask,
            self._scales,
        )
        if self._askers is not None:
            seen = seen.index_select(0, self._places)
        return seen.reshape(self.n_tokens, -1)


class _LongRun:
    """Several tokens of one row."""

    def __init__(self, cache: SlotCache, run: Run) -> None:
        self.n_tokens = len(run.tokens)
        self._run = run
        self._mask = cache.run_mask(run.slot, run.start, len(run.tokens))
        self._scales = cache.factors.scales([run.slot], run.stop)

    def attend(self, layer: SlotLayer, qkv: Tensor, n_heads: int) -> Tensor:
        slot, start, stop = self._run.slot, self._run.start, self._run.stop
        layer.rows[slot, :, start:stop] = qkv[:, n_heads:].transpose(0, 1)
        queries = qkv[:, :n_heads].unflatten(1, (layer.n_heads, -1)).permute(1, 2, 0, 3)
        shape = (-1, queries.shape[1], -1, -1)
        seen = attend(
            queries,
            layer.row_keys[slot, :, None, :stop].expand(shape),
            layer.row_values[slot, :, None, :stop].expand(shape),
            self._mask,
            self._scales,
            is_causal=self._mask is None,
        )
        return seen.permute(2, 0, 1, 3).reshape(self.n_tokens, -1)


class CandidatesAttention:
    """Different next tokens of one row, which stays as it is until one of them is kept.

    Args:
        cache: where the row is.
        slot: the row.
        start: tokens that it holds.
        candidates: N tokens to try.
    """

    def __init__(self, cache: SlotCache, slot: int, start: int, candidates: Sequence[int]) -> None:
        self.positions = torch.full((len(candidates),), start, device=cache.device)
        biases, self._scales = cache.factors.candidates(slot, start, candidates)
        self._mask = None if biases is None else biases.to(cache.dtype)
        self._cache = cache
        self._candidates = candidates
        self._slot = slot
        self._start = start
        self._tried: list[tuple[SlotLayer, Tensor]] = []

    def attend(self, layer: SlotLayer, qkv: Tensor) -> Tensor:
        """Each candidate's queries see the row and the candidate."""
        n_heads = qkv.shape[1] - 2 * layer.n_heads
        new = qkv[:, n_heads:]
        self._tried.append((layer, new))
        past = layer.rows[self._slot, :, : self._start].expand(len(qkv), -1, -1, -1)
        keys, values = torch.cat((past, new[:, :, None]), dim=2).chunk(2, dim=1)
        queries = qkv[:, :n_heads].unflatten(1, (layer.n_heads, -1))
        seen = attend(queries, keys, values, self._mask, self._scales)
        return seen.reshape(len(qkv), -1)

    def keep(self, candidate: int) -> None:
        """Make one candidate the row's next token."""
        self._cache.factors.note(
            self._slot, self._start, self._candidates[candidate : candidate + 1]
        )
        for layer, new in self._tried:
            layer.rows[self._slot, :, self._start] = new[candidate]


def group_nearby(runs: Sequence[Run]) -> list[tuple[int, int]]:
    """Cut single tokens of ascending rows into groups, each to be attended to in one call.

    A call reads all rows from its first to its last up to its longest; so a row joins those before
    it where that reads fewer keys too many than a call of its own is worth.

    Returns:
        First place and the place behind the last, for each group.
    """
    groups: list[tuple[int, int]] = []
    n_rows = longest = 0
    for place, run in enumerate(runs):
        if groups:
            n_between = run.slot - runs[place - 1].slot - 1
            together = (n_rows + n_between + 1) * max(longest, run.stop)
            if together - n_rows * longest - run.stop <= KEYS_PER_CALL:
                groups[-1] = (groups[-1][0], place + 1)
                n_rows += n_between + 1
                longest = max(longest, run.stop)
                continue
        groups.append((place, place + 1))
        n_rows, longest = 1, run.stop
    return groups
