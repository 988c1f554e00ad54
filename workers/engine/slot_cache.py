"""The key-value cache: preallocated rows of ragged length.

The fused path reads and writes the rows itself. Transformers sees them as a `Cache`: before each
forward pass it is told which rows the batch stands for (see `cache_views`); the
layers then write new keys and values there and give back what to attend to.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from workers.engine.row_factors import RowFactors


class CacheView(Protocol):
    """Where the keys and values of one forward pass go."""

    n_keys: int
    """Length of the longest sequence in the batch, this pass's tokens included."""

    def update(self, layer: SlotLayer, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys and values [B, H, T, D] of a layer; returns all, [B, H, n_keys, D]."""
        ...


class SlotLayer(CacheLayerMixin):
    """The rows of one layer."""

    is_sliding = False
    rows: Tensor
    """[slots, 2 H, max_length, D]: keys of all heads, then values."""
    flat: Tensor
    """The same memory as [slots 2 H max_length, D]."""
    row_keys: Tensor
    row_values: Tensor

    def __init__(self, slots: int, max_length: int) -> None:
        CacheLayerMixin.__init__(self)
        self.slots = slots
        self.max_length = max_length
        self.view: CacheView | None = None

    def allocate(
        self, n_heads: int, head_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        """Make the rows.

        Zeros, not `empty`: masked positions are multiplied by 0, and 0 x NaN is NaN.
        """
        shape = (self.slots, 2 * n_heads, self.max_length, head_size)
        self.rows = torch.zeros(shape, dtype=dtype, device=device)
        self.flat = self.rows.view(-1, head_size)
        self.row_keys, self.row_values = self.rows.chunk(2, dim=1)
        self.n_heads = n_heads
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate the rows like the first keys [B, H, T, D] that come."""
        _, n_heads, _, head_size = key_states.shape
        self.allocate(n_heads, head_size, key_states.dtype, key_states.device)

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
        dtype: number format of keys, values and masks.
        device: where the rows are.
    """

    def __init__(
        self, n_layers: int, slots: int, max_length: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.rows = [SlotLayer(slots + 1, max_length) for _ in range(n_layers)]
        self.padding_slot = slots
        """A row more, for tokens that only fill up a batch."""
        self.max_length = max_length
        self.dtype = dtype
        self.device = device
        self.factors = RowFactors(slots + 1, max_length, device)
        """Of the keys, where attention is controlled."""
        super().__init__(layers=list(self.rows))

    def show(self, view: CacheView) -> None:
        """Let the next forward pass see these rows."""
        for layer in self.rows:
            layer.view = view

    @property
    def n_bytes(self) -> int:
        """Memory of all rows, the spare one included."""
        return sum(layer.rows.numel() * layer.rows.element_size() for layer in self.rows)

    def copy_row(self, source: int, target: int, length: int) -> None:
        """Make a row begin with another's first `length` tokens."""
        for layer in self.rows:
            layer.rows[target, :, :length] = layer.rows[source, :, :length]
        self.factors.copy(source, target, length)

    def clear_row(self, slot: int) -> None:
        """Make a row hold zeros."""
        for layer in self.rows:
            if layer.is_initialized:
                layer.rows[slot].zero_()

    def places(self, slots: Tensor, positions: Tensor) -> Tensor:
        """[N 2 H], where the keys and values of N tokens go in a layer's `flat`."""
        first = self.rows[0]
        heads = torch.arange(2 * first.n_heads, device=self.device)
        rows = slots[:, None] * 2 * first.n_heads + heads
        return (rows * first.max_length + positions[:, None]).flatten()

    def next_token_mask(self, slots: list[int], starts: list[int]) -> Tensor | None:
        """[B, 1, 1, longest start + 1] to add to the scores of one token a row; None = nothing."""
        n_keys = max(starts) + 1
        if min(starts) == max(starts):
            biases = self.factors.biases(slots, n_keys)
            return None if biases is None else biases.to(self.dtype)
        return self.mask(slots, torch.tensor(starts, device=self.device)[:, None], n_keys)

    def run_mask(self, slot: int, start: int, length: int) -> Tensor | None:
        """[length, start + length] to add to the scores of a run; None = causal from 0 on."""
        if start == 0 and self.factors.mode(slot) is None:
            return None
        positions = torch.arange(start, start + length, device=self.device)[None]
        return self.mask([slot], positions, start + length)[0, 0]

    def mask(self, slots: list[int], positions: Tensor, n_keys: int) -> Tensor:
        """[B, 1, T, n_keys], added to the scores: 0 up to each token's own position, and biases.

        Args:
            slots: [B] the rows; none = no biases.
            positions: [B, T] place of each token.
            n_keys: keys that are looked at.
        """
        keys = torch.arange(n_keys, device=self.device)
        is_hidden = keys > positions[:, None, :, None]
        mask = torch.zeros(is_hidden.shape, dtype=self.dtype, device=self.device)
        biases = self.factors.biases(slots, n_keys)
        if biases is not None:
            mask += biases
        return mask.masked_fill_(is_hidden, torch.finfo(self.dtype).min)
