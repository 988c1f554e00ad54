"""Which tokens are so like controlled ones that they share in the control."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor


class SimilarTokens:
    """Factors of attention that tokens get for their likeness to tokens with one.

    Args:
        sources: ids of tokens with a factor, and that.
        threshold: least cosine similarity of the input embeddings, -1 ... 1.
        embed: rows [N, H] of the model's input embeddings, for N ids.
    """

    def __init__(
        self,
        sources: Collection[tuple[int, float]],
        threshold: float,
        embed: Callable[[Sequence[int]], Tensor],
    ) -> None:
        ids, factors = zip(*sorted(set(sources)), strict=True)
        self._threshold = threshold
        self._embed = embed
        self._ids = torch.tensor(ids)
        self._factors = torch.tensor(factors, dtype=torch.float64)
        self._directions = self._directions_of(ids)
        self._known: dict[int, float] = {}
        """By token: it depends on nothing else."""

    def factors(self, tokens: Sequence[int]) -> list[float]:
        """The factor of each token, 1 where it is like none."""
        unknown = sorted(set(tokens) - self._known.keys())
        if unknown:
            self._known.update(zip(unknown, self._derive(unknown), strict=True))
        return [self._known[token] for token in tokens]

    def _derive(self, tokens: Sequence[int]) -> list[float]:
        """1 - (1 - f) cos for the source that changes most, by |ln f|.

        A cosine below 0 changes nothing.
        """
        cosines = (self._directions_of(tokens) @ self._directions.T).clamp(-1, 1)
        # Rounded, that of a vector with itself may not be 1.
        cosines[torch.tensor(tokens)[:, None] == self._ids] = 1
        derived = 1 - (1 - self._factors) * cosines.clamp(min=0)
        derived[cosines < self._threshold] = 1
        # The logarithm of 0 is infinite, which is the farthest.
        strongest = derived.log().abs().argmax(dim=1, keepdim=True)
        found: list[float] = derived.gather(1, strongest)[:, 0].tolist()
        return found

    def _directions_of(self, tokens: Sequence[int]) -> Tensor:
        """[N, H] embeddings brought to length 1; zeros stay."""
        rows = self._embed(tokens).to("cpu", torch.float64)
        directions: Tensor = rows / rows.norm(dim=1, keepdim=True).clamp(min=math.ulp(0.0))
        return directions
