"""What the engine knows of a model: reading tokens into cache rows, and trying candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from workers.engine.row_factors import IsLogAdditive
from workers.engine.slot_cache import SlotCache


@dataclass(frozen=True, slots=True)
class Inset:
    """What is read in the place of some tokens of a run.

    Args:
        place: the first of them, counted within the run.
        rows: [n, H], the embeddings that take the place of theirs.
    """

    place: int
    rows: Tensor


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens to read into one row of the cache.

    Args:
        slot: the row.
        start: tokens that the row holds before.
        tokens: at least one; what of them does not fit in the row may not be read.
        needs_scores: whether anybody asks what comes behind the last.
        insets: parts of it that are no text.
        layers: whose states are asked for: 0 = the input embeddings, n = those behind the n-th
            layer, of the last one behind the final norm.
    """

    slot: int
    start: int
    tokens: Sequence[int]
    needs_scores: bool = True
    insets: Sequence[Inset] = ()
    layers: tuple[int, ...] = ()

    @property
    def stop(self) -> int:
        """Tokens that the row holds behind."""
        return self.start + len(self.tokens)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What reading several runs gives.

    Args:
        logits: [M, V] float32, scores behind the last token of the runs that need them, in an
            order of the model's choice.
        places: row of each run in `logits`; None for runs that need no scores.
        hidden: [T, H] for each run, states behind the final norm of its tokens.
        states: the same by layer, at least of those that the run asks for.
    """

    logits: Tensor
    places: Sequence[int | None]
    hidden: Sequence[Tensor]
    states: Sequence[Mapping[int, Tensor]] = ()


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

    _head: Callable[[Tensor], Tensor]
    """Scores [B, V] of last hidden states [B, H]."""
    _embeddings: Callable[[Tensor], Tensor]
    """Input embeddings [N, H] of ids [N]."""
    pads_prompts: bool
    """Whether runs of more than one token that are read together cost as much as the longest."""

    def __init__(self, model: Any, slots: int, max_length: int) -> None:
        self.slots = slots
        self.max_length = max_length
        self.device = torch.device(model.device)
        weights = {each.data_ptr(): each for each in model.parameters()}
        self.weights_bytes = sum(each.numel() * each.element_size() for each in weights.values())
        self.n_layers: int = model.config.num_hidden_layers
        self.cache = SlotCache(self.n_layers, slots, max_length, model.dtype, self.device)

    def warm_up(self) -> None:
        """Do once what is done at the first use: allocate the cache, choose kernels."""
        for tokens in ([0], [0, 0]):
            self.read([Run(0, 0, tokens)])

    def score(self, hidden: Tensor) -> Tensor:
        """Scores [B, V] float32 of what comes behind last hidden states [B, H]."""
        return self._head(hidden).float()

    def embed(self, ids: Sequence[int]) -> Tensor:
        """Input embeddings [N, H] of tokens, without their places."""
        return self._embeddings(torch.tensor(ids, device=self.device))

    @torch.inference_mode()
    def read(self, runs: Sequence[Run]) -> Outcome:
        """Read runs of tokens, of distinct rows, in one step.

        Rows whose attention is controlled are read apart from the others: what a matrix product
        gives for a row depends, in the last bits, on how many rows are in it.
        """
        factors = self.cache.factors
        passes: dict[IsLogAdditive, list[int]] = {}
        for i, run in enumerate(runs):
            factors.note(run.slot, run.start, run.tokens)
            passes.setdefault(factors.mode(run.slot), []).append(i)
        read: dict[int, Mapping[int, Tensor]] = {}
        for members in passes.values():
            read.update(zip(members, self._read([runs[i] for i in members]), strict=True))
        return self._outcome(runs, list(passes.values()), read)

    @abstractmethod
    def _read(self, runs: Sequence[Run]) -> Sequence[Mapping[int, Tensor]]:
        """Read runs of rows whose attention is controlled in the same way, or not at all.

        Returns:
            For each run, states [T, H] of its tokens by layer: of the last, behind the final norm,
            and of those that it asks for.
        """

    @abstractmethod
    def try_candidates(
        self, slot: int, candidates: Tensor, start: int
    ) -> tuple[Tensor, Tensor, Tried]:
        """Read each of several possible next tokens of one row; nothing is kept yet.

        Args:
            slot: the row.
            candidates: [B] int64.
            start: tokens that the row holds before.

        Returns:
            Scores behind each, [B, V] float32, states behind the final norm, [B, H], and a handle
            to keep one.
        """

    @staticmethod
    def _put_insets(runs: Sequence[Run], embeddings: Iterable[Tensor]) -> None:
        """Write runs' insets over what their tokens gave: [T, H] each, or more, changed."""
        for run, own in zip(runs, embeddings, strict=True):
            for inset in run.insets:
                own[inset.place : inset.place + len(inset.rows)] = inset.rows

    def _outcome(
        self,
        runs: Sequence[Run],
        passes: Sequence[Sequence[int]],
        read: Mapping[int, Mapping[int, Tensor]],
    ) -> Outcome:
        """Score the ends of runs that need it.

        Args:
            runs: all.
            passes: which of them were read together, and are scored so.
            read: what reading each gave.
        """
        hidden = [read[i][self.n_layers] for i in range(len(runs))]
        places: list[int | None] = [None] * len(runs)
        logits: list[Tensor] = []
        n_scored = 0
        for members in passes:
            # In the order of the rows, as the next step's tokens will be: nothing is moved then.
            scored = [i for i in members if runs[i].needs_scores]
            scored.sort(key=lambda i: (len(runs[i].tokens) > 1, runs[i].slot))
            for place, i in enumerate(scored, n_scored):
                places[i] = place
            n_scored += len(scored)
            if scored:
                logits.append(self.score(torch.cat([hidden[i][-1:] for i in scored])))
        states = [read[i] for i in range(len(runs))]
        if not logits:
            return Outcome(torch.empty(0), places, hidden, states)
        together = logits[0] if len(logits) == 1 else torch.cat(logits)
        return Outcome(together, places, hidden, states)
