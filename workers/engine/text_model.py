"""What the engine knows of a model: prefill, decode, and trying candidates, over cache rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from workers.engine.slot_cache import SlotCache


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a forward pass gives.

    Args:
        logits: [B, V] float32, scores behind the last token of every row.
        hidden: [N, H], states behind the final norm of every token, row after row.
    """

    logits: Tensor
    hidden: Tensor


class Tried(Protocol):
    """Candidates that were read."""

    def keep(self, candidate: int) -> None:
        """Make one candidate the row's next token."""
        ...


class TextModel(ABC):
    """A causal language model and its cache.

    Args:
        model: a loaded transformers model, in evaluation mode on its device.
        slots: rows of the cache.
        max_length: tokens that a row can hold.
    """

    pads_prompts: bool
    """Whether texts that are read together all cost as much as the longest."""

    def __init__(self, model: Any, slots: int, max_length: int) -> None:
        self.slots = slots
        self.max_length = max_length
        self.device = torch.device(model.device)
        n_layers = model.config.num_hidden_layers
        self.cache = SlotCache(n_layers, slots, max_length, model.dtype, self.device)

    def warm_up(self) -> None:
        """Do once what is done at the first use: allocate the cache, choose kernels."""
        self.prefill([0], [[0]], [0])
        self.decode([0], [0], [1])

    @abstractmethod
    def prefill(self, slots: list[int], texts: list[list[int]], starts: list[int]) -> Outcome:
        """Read a run of tokens into each of several rows.

        Args:
            slots: [B] distinct rows.
            texts: [B] tokens of each, at least one.
            starts: [B] tokens that each row holds before; with the longest run added, at most
                `max_length`.
        """

    @abstractmethod
    def decode(self, slots: list[int], tokens: list[int], starts: list[int]) -> Outcome:
        """Read one more token into each of several rows.

        Args:
            slots: [B] distinct rows, ascending.
            tokens: [B] the token of each.
            starts: [B] tokens that each row holds before.
        """

    @abstractmethod
    def try_candidates(self, slot: int, candidates: Tensor, start: int) -> tuple[Outcome, Tried]:
        """Read each of several possible next tokens [B] of one row; nothing is kept yet."""
