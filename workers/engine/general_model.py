"""The general path: any supported architecture as transformers has it, over ragged cache rows.

Masks, positions and cache are made here; the layers are the library's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from workers.engine.cache_views import CandidatesView, RowsView
from workers.engine.families import adapt_family
from workers.engine.scaled_scores import scaling_scores
from workers.engine.text_model import Run, TextModel


class GeneralModel(TextModel):
    """A model of one of `FAMILIES`, whose scores are its output embeddings times its last state."""

    pads_prompts = True

    def __init__(self, model: Any, slots: int, max_length: int) -> None:
        super().__init__(model, slots, max_length)
        adapt_family(model)
        self._body = model.base_model
        self._embeddings = model.get_input_embeddings()
        self._head = model.get_output_embeddings()
        # BLOOM has no positions; its bias is made from the keys' places.
        self._has_positions = model.config.model_type != "bloom"

    def _read(self, runs: Sequence[Run]) -> Sequence[Mapping[int, Tensor]]:
        """Read runs of tokens, single ones in one pass, longer ones in another."""
        read: dict[int, Mapping[int, Tensor]] = {}
        for is_single in (True, False):
            members = [i for i, run in enumerate(runs) if (len(run.tokens) == 1) is is_single]
            if members:
                # Neighbouring rows are read in place.
                members.sort(key=lambda i: runs[i].slot)
                padded = self._read_padded([runs[i] for i in members])
                read.update(zip(members, padded, strict=True))
        return [read[i] for i in range(len(runs))]

    def _read_padded(self, runs: Sequence[Run]) -> list[Mapping[int, Tensor]]:
        """States [T, H] by layer for each run: of the last, and of those that it asks for.

        Shorter runs are padded to the longest; what that leaves in their rows lies behind their
        own tokens, where nothing looks before it is overwritten.
        """
        longest = max(len(run.tokens) for run in runs)
        padded = [[*run.tokens, *[run.tokens[-1]] * (longest - len(run.tokens))] for run in runs]
        view = RowsView(
            self.cache, [run.slot for run in runs], [run.start for run in runs], longest
        )
        ids = torch.tensor(padded, device=self.device)
        inputs = self._inputs(ids, runs)
        layers = self._forward(view, tells_layers=any(run.layers for run in runs), **inputs)
        return [
            {layer: layers[layer][row, : len(run.tokens)] for layer in (self.n_layers, *run.layers)}
            for row, run in enumerate(runs)
        ]

    @torch.inference_mode()
    def try_candidates(
        self, slot: int, candidates: Tensor, start: int
    ) -> tuple[Tensor, Tensor, CandidatesView]:
        """Read each of several possible next tokens of one row; nothing is kept yet."""
        view = CandidatesView(self.cache, slot, start, candidates.tolist())
        hidden = self._forward(view, input_ids=candidates[:, None])[self.n_layers][:, 0]
        return self._head(hidden).float(), hidden, view

    def _inputs(self, ids: Tensor, runs: Sequence[Run]) -> dict[str, Tensor]:
        """Tokens [B, T] as the body takes them: as they are, or looked up where one has insets."""
        if not any(run.insets for run in runs):
            return {"input_ids": ids}
        embeddings = self._embeddings(ids)
        self._put_insets(runs, embeddings)
        return {"inputs_embeds": embeddings}

    def _forward(
        self, view: RowsView | CandidatesView, *, tells_layers: bool = False, **inputs: Tensor
    ) -> Mapping[int, Tensor]:
        """Hidden states [B, T, H] of [B, T] tokens: of every layer, or of the last alone."""
        self.cache.show(view)
        positions = {"position_ids": view.positions} if self._has_positions else {}
        with scaling_scores(self._body.config, view.scales, view.mask.dtype):
            reply = self._body(
                attention_mask=view.mask,
                cache=self.cache,
                use_cache=True,
                output_hidden_states=tells_layers,
                return_dict=True,
                **inputs,
                **positions,
            )
        return dict(enumerate(reply.hidden_states or ())) | {self.n_layers: reply.last_hidden_state}
