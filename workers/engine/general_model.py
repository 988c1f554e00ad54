"""The general path: any supported architecture as transformers has it, over ragged cache rows.

Masks, positions and cache are made here; the layers are the library's own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from workers.engine.cache_views import CandidatesView, RowsView
from workers.engine.families import adapt_family
from workers.engine.text_model import Outcome, TextModel


class GeneralModel(TextModel):
    """A model of one of `FAMILIES`, whose scores are its output embeddings times its last state."""

    pads_prompts = True

    def __init__(self, model: Any, slots: int, max_length: int) -> None:
        super().__init__(model, slots, max_length)
        adapt_family(model)
        self._body = model.base_model
        self._head = model.get_output_embeddings()
        # BLOOM has no positions; its bias is made from the keys' places.
        self._has_positions = model.config.model_type != "bloom"

    @torch.inference_mode()
    def prefill(self, slots: list[int], texts: list[list[int]], starts: list[int]) -> Outcome:
        """Read a run of tokens into each of several rows.

        Shorter runs are padded to the longest; what that leaves in their rows lies behind their
        own tokens, where nothing looks before it is overwritten.
        """
        lengths = [len(text) for text in texts]
        longest = max(lengths)
        padded = [[*text, *text[-1:] * (longest - len(text))] for text in texts]
        view = RowsView(self.cache, slots, starts, longest)
        hidden = self._forward(torch.tensor(padded, device=self.device), view)
        runs = [states[:length] for states, length in zip(hidden, lengths, strict=True)]
        return self._outcome(torch.stack([run[-1] for run in runs]), torch.cat(runs))

    @torch.inference_mode()
    def decode(self, slots: list[int], tokens: list[int], starts: list[int]) -> Outcome:
        """Read one more token into each of several rows."""
        view = RowsView(self.cache, slots, starts, 1)
        hidden = self._forward(torch.tensor(tokens, device=self.device)[:, None], view)[:, 0]
        return self._outcome(hidden, hidden)

    @torch.inference_mode()
    def try_candidates(
        self, slot: int, candidates: Tensor, start: int
    ) -> tuple[Outcome, CandidatesView]:
        """Read each of several possible next tokens [B] of one row; nothing is kept yet."""
        view = CandidatesView(self.cache, slot, start, len(candidates))
        hidden = self._forward(candidates[:, None], view)[:, 0]
        return self._outcome(hidden, hidden), view

    def _forward(self, ids: Tensor, view: RowsView | CandidatesView) -> Tensor:
        """[B, T, H], the last hidden states of [B, T] tokens."""
        self.cache.show(view)
        positions = {"position_ids": view.positions} if self._has_positions else {}
        reply = self._body(
            input_ids=ids,
            attention_mask=view.mask,
            cache=self.cache,
            use_cache=True,
            return_dict=True,
            **positions,
        )
        hidden: Tensor = reply.last_hidden_state
        return hidden

    def _outcome(self, last: Tensor, hidden: Tensor) -> Outcome:
        return Outcome(self._head(last).float(), hidden)
