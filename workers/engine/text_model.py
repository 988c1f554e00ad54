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
        hidden: [B, T, H], states behind the final norm; None when not asked for.
    """

    logits: Tensor
    hidden: Tensor | None


class TextModel:
    """A loaded model and its cache.

    Args:
        model: a transformers causal language model, in evaluation mode on its device.
        slots: rows of the cache.
        max_length: tokens that a row can hold.
    """

    def __init__(self, model: Any, slots: int, max_length: int) -> None:
        adapt_family(model)
        self._model = model
        self.slots = slots
        self.max_length = max_length
        self.device = torch.device(model.device)
        self.n_logits: int = model.config.vocab_size
        self.cache = SlotCache(model.config.num_hidden_layers, slots, max_length)

    @torch.inference_mode()
    def prefill(
        self, slot: int, tokens: list[int], start: int, *, wants_hidden: bool = False
    ) -> Outcome:
        """Read a run of tokens into a row that holds `start` tokens."""
        view = RowsView([slot], [start], len(tokens), self.device)
        return self._forward(torch.tensor([tokens], device=self.device), view, wants_hidden)

    @torch.inference_mode()
    def decode(self, slots: list[int], tokens: list[int], starts: list[int]) -> Outcome:
        """Read one more token into each of several rows.

        Args:
            slots: [B] distinct rows.
            tokens: [B] the token of each.
            starts: [B] tokens that each row holds before.
        """
        view = RowsView(slots, starts, 1, self.device)
        ids = torch.tensor(tokens, device=self.device)[:, None]
        return self._forward(ids, view, wants_hidden=False)

    @torch.inference_mode()
    def try_candidates(
        self, slot: int, candidates: Tensor, start: int
    ) -> tuple[Outcome, CandidatesView]:
        """Read each of several possible next tokens [B] of one row; nothing is kept yet."""
        view = CandidatesView(slot, start, len(candidates), self.device)
        return self._forward(candidates[:, None], view, wants_hidden=True), view

    def _forward(self, ids: Tensor, view: RowsView | CandidatesView, wants_hidden: bool) -> Outcome:
        self.cache.show(view)
        reply = self._model(
            input_ids=ids,
            attention_mask=self._mask(view),
            cache=self.cache,
            use_cache=True,
            logits_to_keep=1,
            output_hidden_states=wants_hidden,
            return_dict=True,
            **self._positions(view),
        )
        hidden = reply.hidden_states[-1] if wants_hidden else None
        return Outcome(reply.logits[:, -1].float(), hidden)

    def _mask(self, view: RowsView | CandidatesView) -> Tensor:
        """[B, 1, T, n_keys], added to the scores: 0 up to each token's own position."""
        dtype = self._model.dtype
        keys = torch.arange(view.n_keys, device=self.device)
        is_hidden = keys > view.positions[:, None, :, None]
        zeros = torch.zeros(is_hidden.shape, dtype=dtype, device=self.device)
        return zeros.masked_fill_(is_hidden, torch.finfo(dtype).min)

    def _positions(self, view: RowsView | CandidatesView) -> dict[str, Tensor]:
        """Token positions; BLOOM has none, its bias is made from the keys' places."""
        return {} if self._model.config.model_type == "bloom" else {"position_ids": view.positions}
