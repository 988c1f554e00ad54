"""Decoding on a card without launching kernels one by one: recorded steps of fixed shapes.

A step of single tokens is padded to the next recorded number of rows and keys, and replayed as a
CUDA graph; each shape is recorded at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from workers.engine.fused_attention import AttentionPass
from workers.engine.slot_cache import SlotCache, SlotLayer
from workers.engine.text_model import Run

FEWEST_KEYS = 128
"""Keys that a recorded step looks at, at least."""

Step = Callable[[], Tensor]
Forward = Callable[[Tensor, AttentionPass], Tensor]


class FixedRowsAttention:
    """One new token for each of B rows; the numbers may change, but neither B nor the keys read.

    Args:
        cache: where the rows are.
        n_rows: B.
        n_keys: keys that are read of every row; longer ones may not be in the step.
    """

    def __init__(self, cache: SlotCache, n_rows: int, n_keys: int) -> None:
        # To record a step it is done once, which may change nobody's row.
        self.slots = torch.full((n_rows,), cache.padding_slot, device=cache.device)
        self.positions = torch.zeros_like(self.slots)
        self._cache = cache
        self._n_keys = n_keys
        self._places = self._mask = torch.empty(0)

    def prepare(self) -> None:
        """Derive from slots and positions what is the same for all layers."""
        self._places = self._cache.places(self.slots, self.positions)
        self._mask = self._cache.mask([], self.positions[:, None], self._n_keys)

    def attend(self, layer: SlotLayer, qkv: Tensor) -> Tensor:
        """Each token's queries see its row up to itself."""
        n_heads = qkv.shape[1] - 2 * layer.n_heads
        layer.flat.index_copy_(0, self._places, qkv[:, n_heads:].reshape(-1, qkv.shape[2]))
        rows = layer.rows[:, :, : self._n_keys].index_select(0, self.slots)
        keys, values = rows.chunk(2, dim=1)
        queries = qkv[:, :n_heads].unflatten(1, (layer.n_heads, -1))
        seen = scaled_dot_product_attention(queries, keys, values, attn_mask=self._mask)
        return seen.reshape(len(qkv), -1)


class _Recorded:
    """A step of one shape."""

    def __init__(
        self,
        forward: Forward,
        record: Callable[[Step], Step],
        attention: FixedRowsAttention,
    ) -> None:
        self.attention = attention
        self.tokens = torch.zeros_like(attention.positions)

        def step() -> Tensor:
            attention.prepare()
            return forward(self.tokens, attention)

        self.replay = record(step)


class DecodeGraphs:
    """Recorded steps of a model.

    Args:
        forward: the model: [B, H] last hidden states of [B] tokens.
        cache: its rows, and one more at the end, for what is only padding.
        record: makes of a step one that can be replayed.
    """

    def __init__(self, forward: Forward, cache: SlotCache, record: Callable[[Step], Step]) -> None:
        self._forward = forward
        self._cache = cache
        self._record = record
        self._steps: dict[tuple[int, int], _Recorded] = {}

    def can_read(self, runs: Sequence[Run]) -> bool:
        """Whether these are what recorded steps do: single tokens, and no factors of attention."""
        mode = self._cache.factors.mode
        return all(
            len(run.tokens) == 1 and not run.insets and mode(run.slot) is None for run in runs
        )

    def read(self, runs: Sequence[Run]) -> Tensor:
        """[B, H], the last hidden states of single tokens of distinct rows."""
        n_rows = _next_power_of_two(len(runs))
        n_keys = max(FEWEST_KEYS, _next_power_of_two(max(run.stop for run in runs)))
        shape = (n_rows, min(n_keys, self._cache.max_length))
        recorded = self._steps.get(shape)
        if recorded is None:
            attention = FixedRowsAttention(self._cache, *shape)
            recorded = _Recorded(self._forward, self._record, attention)
            self._steps[shape] = recorded
        n_padding = n_rows - len(runs)
        inputs = torch.tensor(
            [
                [run.tokens[0] for run in runs] + [0] * n_padding,
                [run.slot for run in runs] + [self._cache.padding_slot] * n_padding,
                [run.start for run in runs] + [0] * n_padding,
            ]
        ).to(self._cache.device)
        recorded.tokens.copy_(inputs[0])
        recorded.attention.slots.copy_(inputs[1])
        recorded.attention.positions.copy_(inputs[2])
        return recorded.replay()[: len(runs)].clone()


def record_cuda_graph(step: Step) -> Step:
    """Record what a step launches; replaying it gives the same tensor, with new numbers."""
    # Libraries allocate and choose kernels at their first calls, which may not be recorded.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay


def _next_power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
