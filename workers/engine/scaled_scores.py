"""Attention whose scores are scaled key by key: no kernel does that, so it is written out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, softmax
from torch.overrides import TorchFunctionMode

SOFTMAXES = (softmax, torch.softmax, Tensor.softmax)
"""How the models of transformers call it: scores first."""


def scaled_softmax(scores: Tensor, scales: Tensor, mask_dtype: torch.dtype) -> Tensor:
    """Weights of keys by their scores' distance from each row's lowest, times the key's factor.

    s'[q, k] = (s[q, k] - min_j s[q, j]) f[k], then softmax, both over the keys that q sees
    (Aleph Alpha's `control_log_additive: false`).

    Args:
        scores: [B, H, T, K] or [B H, T, K] float, masked: as good as the lowest number where a
            key is hidden.
        scales: [B, 1, 1, K] float32, f; B may be 1 for all.
        mask_dtype: whose lowest number the mask has; scores may be of a wider one.

    Returns:
        float32, of the shape of the scores.
    """
    is_hidden = scores <= torch.finfo(mask_dtype).min / 2
    wide = scores.float()
    lowest = wide.masked_fill(is_hidden, math.inf).amin(-1, keepdim=True)
    distances = (wide - lowest).reshape(len(scales), -1, *scores.shape[-2:])
    scaled = (distances * scales).reshape(scores.shape)
    return scaled.masked_fill_(is_hidden, -math.inf).softmax(-1)


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    scales: Tensor | None,
    *,
    is_causal: bool = False,
) -> Tensor:
    """Attention [B, H, T, D] of queries to keys and values [B, H, K, D].

    Args:
        queries: [B, H, T, D].
        keys: what they look at.
        values: what they see.
        mask: added to the scores, the lowest number where a key is hidden; None = nothing.
        scales: [B, 1, 1, K] factors of keys, B may be 1 for all; None = scores as they are.
        is_causal: instead of a mask, and without factors: each token sees those up to itself.
    """
    if scales is None:
        return scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, is_causal=is_causal
        )
    scores = queries.float() @ keys.float().transpose(-1, -2) / math.sqrt(queries.shape[-1])
    if mask is not None:
        scores += mask
    return scaled_softmax(scores, scales, queries.dtype).to(values.dtype) @ values


@contextmanager
def scaling_scores(config: Any, scales: Tensor | None, mask_dtype: torch.dtype) -> Iterator[None]:
    """Let a model of transformers scale its scores, whatever its family, while this holds.

    Args:
        config: the model's; every family's written-out attention ends in a softmax of scores to
            which the mask was added.
        scales: [B, 1, 1, K], the factors of the batch's keys; None = scores as they are.
        mask_dtype: of the mask that the model gets.
    """
    if scales is None:
        yield
        return
    usual = config._attn_implementation
    config._attn_implementation = "eager"
    try:
        with _Scaling(scales, mask_dtype):
            yield
    finally:
        config._attn_implementation = usual


class _Scaling(TorchFunctionMode):
    """Scales the scores of every softmax in its reach."""

    def __init__(self, scales: Tensor, mask_dtype: torch.dtype) -> None:
        super().__init__()
        self._scales = scales
        self._mask_dtype = mask_dtype

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        options = dict(kwargs or {})
        if func not in SOFTMAXES:
            return func(*args, **options)
        scores = args[0]
        weights = scaled_softmax(scores, self._scales.to(scores.device), self._mask_dtype)
        return weights.to(options.get("dtype") or scores.dtype)
