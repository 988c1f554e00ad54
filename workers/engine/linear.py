"""Matrix products with weights laid out once for the processor they run on."""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from torch import Tensor

N_ROWS_TO_WIDEN = 4
"""From so many rows on, turning 16-bit weights into float32 costs less than doing without."""


class Linear:
    """x @ weight.T + bias.

    On a CPU the weight is reordered for oneDNN, in whose own layout a product takes half the time
    or less (torch 2.13; `mkldnn._linear_pointwise` is what its compiler uses for frozen weights).
    A CPU without arithmetic of the weight's width computes in float32, from weights that stay as
    narrow as they are.

    Args:
        weight: [N, K]; the caller should let go of it.
        bias: [N]; None = none.
    """

    __slots__ = ("_bias", "_is_packed", "_is_too_narrow", "_weight")

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._bias = None if bias is None else bias.detach()
        is_cpu = weight.device.type == "cpu"
        self._is_packed = is_cpu and has_arithmetic(weight.dtype)
        self._is_too_narrow = is_cpu and not self._is_packed
        self._weight: Tensor = (
            torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
            if self._is_packed
            else weight.detach()
        )

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """[B, N] for x [B, K], with `residual` [B, N] added where there is one."""
        if self._is_packed:
            return self._packed(x, residual)
        if self._is_too_narrow and len(x) >= N_ROWS_TO_WIDEN:
            bias = None if self._bias is None else self._bias.float()
            product = functional.linear(x.float(), self._weight.float(), bias)
            return (product if residual is None else product + residual).to(x.dtype)
        product = functional.linear(x, self._weight, self._bias)
        return product if residual is None else product + residual

    def _packed(self, x: Tensor, residual: Tensor | None) -> Tensor:
        operation = torch.ops.mkldnn._linear_pointwise
        product: Tensor = (
            operation(x, self._weight, self._bias, "none", [], "")
            if residual is None
            else operation.binary(x, residual, self._weight, self._bias, "add")
        )
        return product


def has_arithmetic(dtype: torch.dtype) -> bool:
    """Whether this CPU multiplies numbers of this type without turning them into others."""
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    if dtype == torch.float16:
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())
    return dtype == torch.float32
