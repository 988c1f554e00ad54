"""Controlled attention as its formula says, in one plain pass of the library's own model.

Nothing of the engine is used: no cache, no batch, no adapted family; one softmax is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

import torch
from tiny_engine import parts
from torch import Tensor

from neodim_sampling.parameters import WarperParams
from neodim_sampling.prompt_items import AttentionParams, IdsItem, ItemsPrompt, TokenControl
from workers.contract.text_job import TextJob
from workers.contract.text_result import SequenceResult

HIDDEN = -1e30
"""Scores below are of keys that the query does not see."""

ADDED = AttentionParams()
MULTIPLIED = AttentionParams(is_log_additive=False)


def controlled_job(
    ids: Sequence[int],
    factors: Mapping[int, float],
    attention: AttentionParams = ADDED,
    **fields: Any,
) -> TextJob:
    """A job that goes on behind tokens, some of them under control, and tells log-probabilities."""
    controls = tuple(TokenControl(index=place, factor=each) for place, each in factors.items())
    item = IdsItem(ids=tuple(ids), controls=controls)
    own: dict[str, Any] = {"max_new_tokens": 8, "seed": 7, "log_probs": 0}
    own["warpers"] = WarperParams(temperature=1.0)
    prompt = ItemsPrompt(items=(item,), attention=attention)
    return TextJob(model="m", prompt=prompt, **(own | fields))


@torch.inference_mode()
def expected_log_probs(
    family: str,
    ids: Sequence[int],
    factors: Mapping[int, float],
    attention: AttentionParams = ADDED,
) -> Tensor:
    """[T, V] log-probabilities of what comes behind each token."""
    model, _ = parts(family)
    every = torch.tensor([factors.get(place, 1.0) for place in range(len(ids))]).double()

    def softmax(scores: Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> Tensor:
        assert dim == -1
        wide = scores.double().clone()
        for query in range(len(ids)):
            row = wide[..., query, :]
            is_seen = row > HIDDEN
            if attention.is_log_additive:
                changed = row + every.log().clamp(min=-10000)
            else:
                lowest = torch.where(is_seen, row, math.inf).min(-1, keepdim=True).values
                changed = (row - lowest) * every
            assert not is_seen[..., query + 1 :].any()
            # Differences from the highest, as e to the power of more than 700 is infinite.
            highest = torch.where(is_seen, changed, -math.inf).max(-1, keepdim=True).values
            weights = torch.where(is_seen, (changed - highest).exp(), 0.0)
            wide[..., query, :] = weights / weights.sum(-1, keepdim=True)
        return wide.to(dtype or scores.dtype)

    usual = model.config._attn_implementation
    model.config._attn_implementation = "eager"
    with patch("torch.nn.functional.softmax", softmax):
        logits = model(torch.tensor([list(ids)])).logits[0]
    model.config._attn_implementation = usual
    found: Tensor = logits.log_softmax(-1)
    return found


def told_log_probs(sequence: SequenceResult) -> list[float]:
    """What a result tells of the generated tokens."""
    assert sequence.scores is not None
    return [each.log_prob for each in sequence.scores if each.log_prob is not None]


def log_probs_of(expected: Tensor, ids: Sequence[int], n_prompt: int) -> list[float]:
    """Those of the tokens behind a prompt."""
    return [float(expected[place - 1, ids[place]]) for place in range(n_prompt, len(ids))]
