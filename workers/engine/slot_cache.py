"""The key-value cache: preallocated rows of ragged length, seen by transformers as a `Cache`.

Before each forward pass the model is told which rows the batch stands for (a `RowsView` or a
`CandidatesView`); the layers then write new keys and values there and give back what to attend to.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class CacheView(Protocol):
    """Where the keys and values of one forward pass go."""

    n_keys: int
    """Length of the longest sequence in the batch, this pass's tokens included."""

    def update(self, layer: SlotLayer, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys and values [B, H, T, D] of a layer; returns all, [B, H, n_keys, D]."""
        ...


class SlotLayer(CacheLayerMixin):
    """The rows of one layer, [slots, H, max_length, D] each."""

    is_sliding = False
    row_keys: Tensor
    row_values: Tensor

    def __init__(self, slots: int, max_length: int) -> None:
        CacheLayerMixin.__init__(self)
        self.slots = slots
        self.max_length = max_length
        self.view: CacheView | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate the rows like the first keys [B, H, T, D] that come.

        Zeros, not `empty`: masked positions are multiplied by 0, and 0 x NaN is NaN.
        """
        shape = (self.slots, key_states.shape[1], self.max_length, key_states.shape[3])
        self.row_keys = torch.zeros(shape, dtype=key_states.dtype, device=key_states.device)
        self.row_values = torch.zeros(shape, dtype=value_states.dtype, device=value_states.device)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Store new keys and values; transformers calls this in every layer."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.view is not None, "a forward pass needs a view"
        return self.view.update(self, key_states, value_states)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of the keys; masks are ours, so only the length matters."""
        return self.get_seq_length(), 0

    def get_seq_length(self) -> int:
        """Keys in the longest row of the batch; only tables that grow by need look at it."""
        return self.view.n_keys if self.view is not None else 0

    def get_max_length(self) -> int:
        """Tokens that a row can hold."""
        return self.max_length


class SlotCache(Cache):
    """The cache of a whole model.

    Args:
        n_layers: layers of the model.
        slots: rows, one per running sequence.
        max_length: tokens that a row can hold.
    """

    def __init__(self, n_layers: int, slots: int, max_length: int) -> None:
        self.rows = [SlotLayer(slots, max_length) for _ in range(n_layers)]
        super().__init__(layers=list(self.rows))

    def show(self, view: CacheView) -> None:
        """Let the next forward pass see these rows."""
        for layer in self.rows:
            layer.view = view

    @property
    def n_bytes(self) -> int:
        """Memory of all rows when they are full; on the CPU, less until then."""
        tensors = [each for layer in self.rows for each in (layer.row_keys, layer.row_values)]
        return sum(each.numel() * each.element_size() for each in tensors)

    def copy_row(self, source: int, target: int, length: int) -> None:
        """Make a row begin with another's first `length` tokens."""
        for layer in self.rows:
            layer.row_keys[target, :, :length] = layer.row_keys[source, :, :length]
            layer.row_values[target, :, :length] = layer.row_values[source, :, :length]


class RowsView:
    """A batch that stands for distinct rows, each written at its own length.

    Args:
        slots: [B] row of each batch entry.
        starts: [B] tokens that each row holds before this pass.
        n_tokens: T, tokens that this pass adds to every row.
        device: where the cache is.
    """

    def __init__(
        self, slots: list[int], starts: list[int], n_tokens: int, device: torch.device
    ) -> None:
        self.n_keys = max(starts) + n_tokens
        self._slots = torch.tensor(slots, device=device)
        steps = torch.arange(n_tokens, device=device)
        self.positions = torch.tensor(starts, device=device)[:, None] + steps
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
        slot: the row.
        start: tokens that it holds.
        n_candidates: B, tokens tried.
        device: where the cache is.
    """

    def __init__(self, slot: int, start: int, n_candidates: int, device: torch.device) -> None:
        self.n_keys = start + 1
        self.positions = torch.full((n_candidates, 1), start, device=device)
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
        for layer, keys, values in self._tried:
            layer.row_keys[self._slot, :, self._start] = keys[candidate, :, 0]
            layer.row_values[self._slot, :, self._start] = values[candidate, :, 0]
