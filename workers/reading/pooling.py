"""The states of a text's tokens become one vector, as they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from workers.contract.reading_job import Pooling


class Pools:
    """What pooling has made of the states seen so far; `joined` gives another one.

    Args:
        n_tokens: of the text.
        layers: which states are pooled.
        poolings: how.
        factors: of attention, by the place of the token, 1 where none is: a mean weighs states by
            them, unless all are 0.
    """

    def __init__(
        self,
        n_tokens: int,
        layers: tuple[int, ...],
        poolings: Sequence[Pooling],
        factors: Mapping[int, float],
    ) -> None:
        self.layers = layers
        self.n_seen = 0
        self._weights = _weights(n_tokens, poolings, factors)
        self._poolings = tuple(poolings)
        self._pooled: Mapping[tuple[int, Pooling], Tensor] = {}

    def joined(self, states: Mapping[int, Tensor]) -> Pools:
        """The pools with the states of the tokens that come next.

        Args:
            states: [T, H] of each layer.
        """
        other = Pools(0, self.layers, (), {})
        other._weights, other._poolings = self._weights, self._poolings
        other.n_seen = self.n_seen + len(next(iter(states.values())))
        other._pooled = {
            (layer, pooling): self._joined(layer, pooling, each)
            for layer, each in ((layer, states[layer].double()) for layer in self.layers)
            for pooling in self._poolings
        }
        return other

    def vector(self, layer: int, pooling: Pooling) -> Tensor:
        """[H] float64, what all states of a layer became."""
        return self._pooled[layer, pooling]

    def _joined(self, layer: int, pooling: Pooling, states: Tensor) -> Tensor:
        before = self._pooled.get((layer, pooling))
        if pooling in self._weights:
            weights = self._weights[pooling][self.n_seen : self.n_seen + len(states)]
            pooled = weights.to(states.device) @ states
            return pooled if before is None else before + pooled
        if pooling is Pooling.LAST_TOKEN:
            return states[-1].clone()
        if pooling is Pooling.MAX:
            pooled = states.amax(0)
            return pooled if before is None else torch.maximum(before, pooled)
        pooled = _farthest(states)
        return pooled if before is None else _farthest(torch.stack([before, pooled]))


def _farthest(states: Tensor) -> Tensor:
    """[H], of each of the numbers in [T, H] states the one that is farthest from 0."""
    return states.gather(0, states.abs().argmax(0, keepdim=True))[0]


def _weights(
    n_tokens: int, poolings: Sequence[Pooling], factors: Mapping[int, float]
) -> Mapping[Pooling, Tensor]:
    """[n_tokens] weights of sum 1, of the poolings that have some."""
    places = torch.arange(1, n_tokens + 1, dtype=torch.float64)
    shares = torch.tensor([factors.get(n, 1.0) for n in range(n_tokens)], dtype=torch.float64)
    weights = {
        Pooling.MEAN: shares if shares.any() else torch.ones_like(shares),
        # The later a token, the more it has seen (SGPT, arXiv:2202.08904).
        Pooling.WEIGHTED_MEAN: places,
    }
    return {name: each / each.sum() for name, each in weights.items() if name in poolings}
