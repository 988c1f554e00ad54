"""A causal language model over cache rows: prefill, decode, and trying candidates.

The only place that calls the model. The general path: any supported architecture as transformers
has it, with masks, positions and cache made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workers.engine.families import adapt_family
from workers.engine.slot_cache import CandidatesView, RowsView, SlotCache


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a forward pass gives.

    Args:
        logits: [B, V] float32, scores behind the last token of every row.
        hidden: [B, T, H], states behind the final norm; of no meaning behind a row's tokens.
    """

    logits: Tensor
    hidden: Tensor


class TextModel:
    """A loaded model and its cache.

    Args:
        model: a transformers causal language model of one of `FAMILIES`, in evaluation mode on its
            device; its scores are its output embeddings applied to its last hidden state.
        slots: rows of the cache.
        max_length: tokens that a row can hold.
    """

    def __init__(self, model: Any, slots: int, max_length: int) -> None:
        adapt_family(model)
        self._body = model.base_model
        self._head = model.get_output_embeddings()
        self._dtype = model.dtype
        # BLOOM has no positions; its bias is made from the keys' places.
        self._has_positions = model.config.model_type != "bloom"
        self.slots = slots
        self.max_length = max_length
        self.device = torch.device(model.device)
        self.cache = SlotCache(model.config.num_hidden_layers, slots, max_length)

    def warm_up(self) -> None:
        """Do once what is done at the first use: allocate the cache, choose kernels."""
        self.prefill([0], [[0]], [0])

    @torch.inference_mode()
    def prefill(self, slots: list[int], texts: list[list[int]], starts: list[int]) -> Outcome:
        """Read a run of tokens into each of several rows.

        Shorter runs are padded to the longest; what that leaves in their rows lies behind their
        own tokens, where nothing looks before it is overwritten.

        Args:
            slots: [B] distinct rows.
            texts: [B] tokens of each, at least one.
            starts: [B] tokens that each row holds before; with the longest run added, at most
                `max_length`.
        """
        longest = max(map(len, texts))
        padded = [[*text, *text[-1:] * (longest - len(text))] for text in texts]
        view = RowsView(slots, starts, longest, self.device)
        ends = torch.tensor([len(text) - 1 for text in texts], device=self.device)
        return self._forward(torch.tensor(padded, device=self.device), view, ends)

    @torch.inference_mode()
    def decode(self, slots: list[int], tokens: list[int], starts: list[int]) -> Outcome:
        """Read one more token into each of several rows.

        Args:
            slots: [B] distinct rows.
            tokens: [B] the token of each.
            starts: [B] tokens that each row holds before.
        """
        view = RowsView(slots, starts, 1, self.device)
        return self._forward(torch.tensor(tokens, device=self.device)[:, None], view)

    @torch.inference_mode()
    def try_candidates(
        self, slot: int, candidates: Tensor, start: int
    ) -> tuple[Outcome, CandidatesView]:
        """Read each of several possible next tokens [B] of one row; nothing is kept yet."""
        view = CandidatesView(slot, start, len(candidates), self.device)
        return self._forward(candidates[:, None], view), view

    def _forward(
        self, ids: Tensor, view: RowsView | CandidatesView, ends: Tensor | None = None
    ) -> Outcome:
        """Run the model over [B, T] tokens; `ends` [B] has each row's last, None = all the last."""
        self.cache.show(view)
        positions = {"position_ids": view.positions} if self._has_positions else {}
        reply = self._body(
            input_ids=ids,
            attention_mask=self._mask(view),
            cache=self.cache,
            use_cache=True,
            return_dict=True,
            **positions,
        )
        hidden = reply.last_hidden_state
        rows = torch.arange(len(ids), device=self.device)
        last = hidden[:, -1] if ends is None else hidden[rows, ends]
        return Outcome(self._head(last).float(), hidden)

    def _mask(self, view: RowsView | CandidatesView) -> Tensor:
        """[B, 1, T, n_keys], added to the scores: 0 up to each token's own position."""
        keys = torch.arange(view.n_keys, device=self.device)
        is_hidden = keys > view.positions[:, None, :, None]
        zeros = torch.zeros(is_hidden.shape, dtype=self._dtype, device=self.device)
        return zeros.masked_fill_(is_hidden, torch.finfo(self._dtype).min)
