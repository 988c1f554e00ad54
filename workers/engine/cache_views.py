"""What transformers sees of the cache in one forward pass: new keys go in, all keys come out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.engine.slot_cache import SlotCache, SlotLayer


class RowsView:
    """A batch that stands for distinct rows, each written at its own length.

    Args:
        cache: where the rows are.
        slots: [B] row of each batch entry.
        starts: [B] tokens that each row holds before this pass.
        n_tokens: T, tokens that this pass adds to every row.
    """

    def __init__(
        self, cache: SlotCache, slots: list[int], starts: list[int], n_tokens: int
    ) -> None:
        self.n_keys = max(starts) + n_tokens
        self._slots = torch.tensor(slots, device=cache.device)
        steps = torch.arange(n_tokens, device=cache.device)
        self.positions = torch.tensor(starts, device=cache.device)[:, None] + steps
        self.mask = cache.mask(slots, self.positions, self.n_keys)
        self.scales = cache.factors.scales(slots, self.n_keys)
        is_run = slots == list(range(slots[0], slots[0] + len(slots)))
        # Neighbouring rows are read in place; others have to be gathered.
        self._rows = slice(slots[0], slots[0] + len(slots)) if is_run else self._slots

    def update(self, layer: SlotLayer, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write at each row's own positions; returns the rows up to the longest."""
        layer.row_keys[self._slots[:, None], :, self.positions] = keys.transpose(1, 2)
        layer.row_values[self._slots[:, None], :, self.positions] = values.transpose(1, 2)
        return layer.row_keys[self._rows, :, : self.n_keys], layer.row_values[
            self._rows, :, : self.n_keys
        ]


class CandidatesView:
    """A batch that tries different next tokens of one row, without changing it until `keep`.

    Args:
        cache: where the row is.
        slot: the row.
        start: tokens that it holds.
        candidates: B tokens to try.
    """

    def __init__(self, cache: SlotCache, slot: int, start: int, candidates: Sequence[int]) -> None:
        self.n_keys = start + 1
        self.positions = torch.full((len(candidates), 1), start, device=cache.device)
        biases, self.scales = cache.factors.candidates(slot, start, candidates)
        self.mask = cache.mask([], self.positions, self.n_keys)
        if biases is not None:
            self.mask += biases
        self._cache = cache
        self._candidates = candidates
        self._slot = slot
        self._start = start
        self._tried: list[tuple[SlotLayer, Tensor, Tensor]] = []

    def update(self, layer: SlotLayer, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Set the candidates' keys and values aside; returns them behind the row's own."""
        self._tried.append((layer, keys, values))
        past_keys = layer.row_keys[self._slot, :, : self._start].expand(len(keys), -1, -1, -1)
        past_values = layer.row_values[self._slot, :, : self._start].expand(len(keys), -1, -1, -1)
        return torch.cat((past_keys, keys), dim=2), torch.cat((past_values, values), dim=2)

    def keep(self, candidate: int) -> None:
        """Make one candidate the row's next token."""
        self._cache.factors.note(
            self._slot, self._start, self._candidates[candidate : candidate + 1]
        )
        for layer, keys, values in self._tried:
            layer.row_keys[self._slot, :, self._start] = keys[candidate, :, 0]
            layer.row_values[self._slot, :, self._start] = values[candidate, :, 0]
