"""Products with weights in the processor's own layout are the plain products."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear

from workers.engine import linear as module
from workers.engine.linear import N_ROWS_TO_WIDEN, Linear
from workers.engine.lookup_table import LookupTable

TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("n_rows", [1, N_ROWS_TO_WIDEN, 33])
@pytest.mark.parametrize("has_arithmetic", [True, False])
def test_linear_gives_the_plain_product(
    monkeypatch: pytest.MonkeyPatch,
    dtype: torch.dtype,
    has_bias: bool,
    n_rows: int,
    has_arithmetic: bool,
) -> None:
    if not has_arithmetic:
        monkeypatch.setattr(module, "has_arithmetic", lambda dtype: False)
    torch.manual_seed(0)
    weight, bias = torch.randn(40, 24) / 5, torch.randn(40) if has_bias else None
    x, residual = torch.randn(n_rows, 24), torch.randn(n_rows, 40)
    layer = Linear(weight.to(dtype), None if bias is None else bias.to(dtype))

    found = layer(x.to(dtype)), layer(x.to(dtype), residual.to(dtype))

    expected = linear(x, weight, bias)
    tolerance = TOLERANCE[dtype]
    torch.testing.assert_close(found[0].float(), expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(
        found[1].float(), expected + residual, rtol=tolerance, atol=2 * tolerance
    )
    assert found[0].dtype == dtype


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_lookup_table_gives_the_rows_without_keeping_the_matrix(dtype: torch.dtype) -> None:
    weight = torch.randn(50, 8).to(dtype)
    table, expected = LookupTable(weight), weight[[3, 0, 49, 3]].clone()

    weight.zero_()

    assert torch.equal(table(torch.tensor([3, 0, 49, 3])), expected)
