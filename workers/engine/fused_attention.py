"""Attention of the fused path: where new keys and values go, and which ones a query sees.

One object per forward pass, the same for all layers. The query heads that share a key head are
laid out as rows of queries, so that keys are read once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from workers.engine.slot_cache import SlotCache, SlotLayer

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


@dataclass(frozen=True, slots=True)
class _Group:
    """Tokens of neighbouring rows whose attention is one call.

    Args:
        tokens: their places in the pass.
        rows: their rows.
        n_keys: length of the longest of them, the new token included.
        mask: [B, 1, 1, n_keys], added to the scores; None = all of one length.
    """

    tokens: slice
    rows: slice
    n_keys: int
    mask: Tensor | None


class NextTokens:
    """One new token for each of several rows.

    Args:
        cache: where the rows are.
        slots: [N] distinct rows, ascending.
        starts: [N] tokens that each row holds before.
    """

    def __init__(self, cache: SlotCache, slots: list[int], starts: list[int]) -> None:
        self.positions = torch.tensor(starts, device=cache.device)
        self._places = cache.places(torch.tensor(slots, device=cache.device), self.positions)
        self._groups = [
            _Group(
                slice(first, last),
                slice(slots[first], slots[last - 1] + 1),
                max(starts[first:last]) + 1,
                cache.next_token_mask(slots[first:last], starts[first:last]),
            )
            for first, last in group_neighbours(slots, starts)
        ]

    def attend(self, layer: SlotLayer, qkv: Tensor) -> Tensor:
        """One token's queries see its row up to itself."""
        n_heads = qkv.shape[1] - 2 * layer.n_heads
        layer.flat.index_copy_(0, self._places, qkv[:, n_heads:].reshape(-1, qkv.shape[2]))
        queries = qkv[:, :n_heads].unflatten(1, (layer.n_heads, -1))
        parts = [
            scaled_dot_product_attention(
                queries[group.tokens],
                layer.row_keys[group.rows, :, : group.n_keys],
                layer.row_values[group.rows, :, : group.n_keys],
                attn_mask=group.mask,
            )
            for group in self._groups
        ]
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).reshape(len(qkv), -1)


@dataclass(frozen=True, slots=True)
class _Run:
    """Tokens of one prompt that are read together."""

    tokens: slice
    slot: int
    start: int
    stop: int
    mask: Tensor | None


class PromptRuns:
    """A run of new tokens for each of several rows, one run behind the other.

    Args:
        cache: where the rows are.
        slots: [B] distinct rows.
        lengths: [B] tokens of each run.
        starts: [B] tokens that each row holds before.
    """

    def __init__(
        self, cache: SlotCache, slots: list[int], lengths: list[int], starts: list[int]
    ) -> None:
        self._runs: list[_Run] = []
        for slot, length, start in zip(slots, lengths, starts, strict=True):
            first = self._runs[-1].tokens.stop if self._runs else 0
            mask = cache.run_mask(slot, start, length)
            run = _Run(slice(first, first + length), slot, start, start + length, mask)
            self._runs.append(run)
        places = [torch.arange(run.start, run.stop, device=cache.device) for run in self._runs]
        self.positions = torch.cat(places)

    def attend(self, layer: SlotLayer, qkv: Tensor) -> Tensor:
        """Each token's queries see its row up to itself."""
        n_heads = qkv.shape[1] - 2 * layer.n_heads
        parts = [self._attend(layer, run, qkv[run.tokens], n_heads) for run in self._runs]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    @staticmethod
    def _attend(layer: SlotLayer, run: _Run, qkv: Tensor, n_heads: int) -> Tensor:
        layer.rows[run.slot, :, run.start : run.stop] = qkv[:, n_heads:].transpose(0, 1)
        queries = qkv[:, :n_heads].unflatten(1, (layer.n_heads, -1)).permute(1, 2, 0, 3)
        shape = (-1, queries.shape[1], -1, -1)
        seen = scaled_dot_product_attention(
            queries,
            layer.row_keys[run.slot, :, None, : run.stop].expand(shape),
            layer.row_values[run.slot, :, None, : run.stop].expand(shape),
            attn_mask=run.mask,
            is_causal=run.mask is None and run.stop - run.start > 1,
        )
        return seen.permute(2, 0, 1, 3).reshape(len(qkv), -1)


class Candidates:
    """Different next tokens of one row, which stays as it is until one of them is kept.

    Args:
        cache: where the row is.
        slot: the row.
        start: tokens that it holds.
        n_candidates: N, tokens tried.
    """

    def __init__(self, cache: SlotCache, slot: int, start: int, n_candidates: int) -> None:
        self.positions = torch.full((n_candidates,), start, device=cache.device)
        self._slot = slot
        self._start = start
        self._mask = cache.next_token_mask([slot], [start])
        self._tried: list[tuple[SlotLayer, Tensor]] = []

    def attend(self, layer: SlotLayer, qkv: Tensor) -> Tensor:
        """Each candidate's queries see the row and the candidate."""
        n_heads = qkv.shape[1] - 2 * layer.n_heads
        self._tried.append((layer, qkv[:, n_heads:]))
        past = layer.rows[self._slot, :, : self._start].expand(len(qkv), -1, -1, -1)
        keys, values = torch.cat((past, qkv[:, n_heads:, None]), dim=2).chunk(2, dim=1)
        queries = qkv[:, :n_heads].unflatten(1, (layer.n_heads, -1))
        seen = scaled_dot_product_attention(queries, keys, values, attn_mask=self._mask)
        return seen.reshape(len(qkv), -1)

    def keep(self, candidate: int) -> None:
        """Make one candidate the row's next token."""
        for layer, keys_and_values in self._tried:
            layer.rows[self._slot, :, self._start] = keys_and_values[candidate]


def group_neighbours(slots: Sequence[int], starts: Sequence[int]) -> list[tuple[int, int]]:
    """Cut ascending rows into runs of neighbours, each to be attended to in one call.

    All rows of a call are read up to its longest, so a row joins its neighbours where that reads
    fewer keys too many than a call of its own is worth.

    Returns:
        First place and the place behind the last, for each run.
    """
    groups: list[tuple[int, int]] = []
    longest = 0
    for place, start in enumerate(starts):
        if groups and slots[place] == slots[place - 1] + 1:
            first, last = groups[-1]
            n_wasted = (last - first) * max(0, start - longest) + max(0, longest - start)
            if n_wasted <= KEYS_PER_CALL:
                groups[-1] = (first, last + 1)
                longest = max(longest, start)
                continue
        groups.append((place, place + 1))
        longest = start
    return groups
