"""What a prompt's attention controls ask of the engine: a factor for each key of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from neodim_sampling.prompt_items import LARGEST_FACTOR, AttentionParams
from workers.engine.similar_tokens import SimilarTokens

Embed = Callable[[Sequence[int]], Tensor]
"""Rows [N, H] of the model's input embeddings, for N ids."""


class AttentionControl:
    """Factors for the attention that the keys of a text get, in all layers and heads.

    Sequences that begin with the same prompt may share one.

    Args:
        factors: by the place among the input tokens, >= 0; at least one is not 1. One of 1 keeps
            its token as it is, whatever it is like.
        params: how they act, and which tokens like these they reach too.
    """

    def __init__(self, factors: Mapping[int, float], params: AttentionParams) -> None:
        self._factors = {place: min(factor, LARGEST_FACTOR) for place, factor in factors.items()}
        self._threshold = params.threshold
        self._similar: SimilarTokens | None = None
        self.is_log_additive = params.is_log_additive
        """Whether logarithms of factors are added to scores, rather than scores multiplied."""
        self.first_place = min(place for place, factor in factors.items() if factor != 1)
        """The first input token that it reaches; what stands before is read as without it."""

    @classmethod
    def of(cls, factors: Mapping[int, float], params: AttentionParams) -> AttentionControl | None:
        """A control with these factors by place; None where none of them differs from 1."""
        return cls(factors, params) if any(each != 1 for each in factors.values()) else None

    def learn(self, input_ids: Sequence[int], embed: Embed) -> None:
        """Find out which tokens it reaches by their likeness; needed before anything is read.

        Args:
            input_ids: the prompt's tokens; those of pictures as `numbered` gives them.
            embed: looks up the model's input embeddings, of such numbers too.
        """
        if self._threshold is None or self._similar is not None:
            return
        sources = [(input_ids[place], factor) for place, factor in self._factors.items()]
        self._similar = SimilarTokens(sources, self._threshold, embed)
        reached = self.factors_of(0, input_ids)
        # When they are read, pictures' tokens are all alike.
        self._factors = dict(enumerate(reached))
        self.first_place = next(place for place, factor in enumerate(reached) if factor != 1)

    def factors_of(self, start: int, tokens: Sequence[int]) -> list[float]:
        """The factor of each of some tokens as keys.

        Args:
            start: place of the first.
            tokens: prompt's or generated ones.
        """
        places = range(start, start + len(tokens))
        similar = [1.0] * len(tokens) if self._similar is None else self._similar.factors(tokens)
        return [
            self._factors.get(place, other) for place, other in zip(places, similar, strict=True)
        ]
