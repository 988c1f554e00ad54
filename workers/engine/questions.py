"""What a generation is to find out from its prompt, beside what the model says behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from neodim_sampling.prompt_items import AttentionParams
from workers.engine.pictures import PlacedPicture


class StatePool(Protocol):
    """Makes something of the states that a model has as it reads a text, part by part."""

    @property
    def layers(self) -> tuple[int, ...]:
        """Which states: 0 = the input embeddings, n = those behind the n-th layer."""
        ...

    @property
    def n_seen(self) -> int:
        """Tokens whose states it has seen."""
        ...

    def joined(self, states: Mapping[int, Tensor]) -> StatePool:
        """What it becomes with the states of the tokens that come next.

        Args:
            states: [T, H] of each of its layers.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a prompt.

    Args:
        first_told: place, from 1 up, of the first token whose likelihood is asked, as that of all
            behind it is; None = of none.
        n_top: likeliest tokens to tell at each such place.
        pool: what is to see the states of all tokens; None = nothing.
    """

    first_told: int | None = None
    n_top: int = 0
    pool: StatePool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextToRead:
    """A text behind which nothing is generated.

    Args:
        ids: its tokens, at least one.
        question: what is to be found out of it.
        factors: for the attention that tokens get, by their places, where it is not 1.
        attention: how those act.
        pictures: what of it is no text.
    """

    ids: tuple[int, ...]
    question: Question
    factors: Mapping[int, float] = field(default_factory=dict)
    attention: AttentionParams = field(default_factory=AttentionParams)
    pictures: Sequence[PlacedPicture] = ()
