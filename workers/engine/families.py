"""What single model families need to run over ragged rows (transformers 5.24)."""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from torch import Tensor

FAMILIES = (
    "bloom",
    "codegen",
    "gpt2",
    "gpt_neo",
    "gpt_neox",
    "gptj",
    "llama",
    "opt",
    "xglm",
)
"""Values of `config.model_type` whose outputs are checked."""


def adapt_family(model: Any) -> None:
    """Change a loaded model where its family assumes that all rows are of one length."""
    adapt = {"bloom": _adapt_bloom, "gpt_neo": _adapt_gpt_neo}.get(model.config.model_type)
    if adapt is not None:
        adapt(model)


def _adapt_bloom(model: Any) -> None:
    """BLOOM makes its position bias from a 2-D mask, and gets a 4-D one from us."""
    heads = model.config.n_head
    unit = torch.ones(1, 2)
    # The library's own bias at the second position is each head's slope.
    slopes = model.transformer.build_alibi_tensor(unit, heads, torch.float32)[:, 0, 1]

    def build(mask: Tensor, num_heads: int, dtype: torch.dtype) -> Tensor:
        n_rows, n_keys = mask.shape[0], mask.shape[-1]
        positions = torch.arange(n_keys, device=mask.device, dtype=torch.float32)
        bias = slopes.to(mask.device)[:, None, None] * positions
        repeated: Tensor = bias.repeat(n_rows, 1, 1)
        return repeated.to(dtype)

    model.transformer.build_alibi_tensor = build


def _adapt_gpt_neo(model: Any) -> None:
    """GPT-Neo places its local window as if the queries were the last keys of every row."""
    for block in model.transformer.h:
        attention = block.attn.attention
        attention._attn = MethodType(_attend_in_window, attention)


def _attend_in_window(
    self: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """GPT-Neo's attention (unscaled, in float32) with the window of each row's own position.

    Args:
        self: the attention module.
        query: [B, H, T, D].
        key: [B, H, K, D].
        value: [B, H, K, D].
        attention_mask: [B, 1, T, K], added to the scores; very low where a key is hidden.
    """
    scores = query.float() @ key.float().transpose(-1, -2) + attention_mask
    if self.attention_type == "local":
        is_visible = attention_mask > torch.finfo(attention_mask.dtype).min / 2
        newest = is_visible.sum(-1, keepdim=True) - 1
        places = torch.arange(key.shape[2], device=key.device)
        is_outside = places <= newest - self.config.window_size
        scores = scores.masked_fill(is_outside, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1).to(value.dtype)
    return weights @ value, weights
