"""Tests of the filters at work: what few tokens decide is what a sort of all decides."""

from __future__ import annotations

import math

import pytest
import torch
from full_sort import full_sort
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neodim_sampling.selection import Stage, keep_, keep_by_sort_
from neodim_sampling.warpers import FILTERS

# Names of filters, each with its values for three rows.
fractions = st.one_of(
    st.floats(0, 1, exclude_min=True, exclude_max=True),
    st.sampled_from([1e-300, 1e-9, 0.2, 0.5, 0.9, 0.95, 0.999_999, math.nextafter(1, 0)]),
)
counts = st.one_of(st.integers(1, 70), st.integers(1, 1500)).map(float)


@st.composite
def filters(draw: st.DrawFn, max_size: int) -> list[Stage]:
    names = draw(st.lists(st.sampled_from(sorted(FILTERS)), min_size=1, max_size=max_size))
    whole = fractions | st.just(1.0)
    one = {"top_k": counts, "tfs": whole, "top_a": whole, "min_p": whole}
    values = [[draw(one.get(name, fractions)) for _ in range(3)] for name in names]
    return [
        (name, torch.tensor(value, dtype=torch.float64))
        for name, value in zip(names, values, strict=True)
    ]


@st.composite
def batches(draw: st.DrawFn) -> Tensor:
    """Three rows, peaked or flat, with few or many equal scores and impossible tokens."""
    n_vocab = draw(st.one_of(st.integers(1, 70), st.sampled_from([200, 1025, 2500])))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([0.0, 0.05, 0.5, 1.0, 2.0, 4.0, 8.0, 40.0, 1e30]))
    scores = torch.randn(3, n_vocab, generator=generator) * spread
    step = draw(st.sampled_from([None, 0.01, 0.125, 1.0]))
    if step is not None:
        scores = (scores / step).round() * step
    n_live = draw(st.sampled_from([1.0, 1.0, 0.9, 0.1, 0.01, 0.0]))
    dead = torch.rand(3, n_vocab, generator=generator) >= n_live
    return scores.masked_fill(dead, -math.inf)


def expected(scores: Tensor, stages: list[Stage]) -> Tensor:
    """All filters, one row after the other."""
    rows = []
    for i, row in enumerate(scores):
        for name, value in stages:
            row = full_sort(name, row, float(value[i]))
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("widths", [(128, 2048), (3, 8), (5, 60, 300)])
@given(scores=batches(), stages=filters(max_size=1))
def test_filter_keeps_what_a_full_sort_keeps(
    widths: tuple[int, ...], scores: Tensor, stages: list[Stage]
):
    wanted = expected(scores, stages)

    keep_(scores, stages, widths)

    assert torch.equal(scores, wanted)


@pytest.mark.parametrize("widths", [(128, 2048), (3, 8)])
@given(scores=batches(), stages=filters(max_size=5))
def test_filters_keep_what_full_sorts_one_after_the_other_keep(
    widths: tuple[int, ...], scores: Tensor, stages: list[Stage]
):
    wanted = expected(scores, stages)

    keep_(scores, stages, widths)

    assert torch.equal(scores, wanted)


@given(scores=batches(), stages=filters(max_size=3))
def test_filters_that_sort_all_keep_the_same(scores: Tensor, stages: list[Stage]):
    wanted = expected(scores, stages)

    keep_by_sort_(scores, stages)

    assert torch.equal(scores, wanted)


@given(scores=batches(), stages=filters(max_size=2), seed=st.integers(0, 1000))
def test_what_is_kept_depends_on_the_scores_and_not_on_where_they_are(
    scores: Tensor, stages: list[Stage], seed: int
):
    # Of equal scores the lower ids stay, so there must be none.
    scores = scores + torch.arange(scores.shape[-1]) * 1e-4
    order = torch.randperm(scores.shape[-1], generator=torch.Generator().manual_seed(seed))
    is_distinct = torch.tensor([len(row[row > -math.inf].unique()) for row in scores])
    if not torch.equal(is_distinct, (scores > -math.inf).sum(-1)):
        return
    permuted = scores[:, order].clone()

    keep_(scores, stages)
    keep_(permuted, stages)

    assert torch.equal(permuted, scores[:, order])


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_rows_of_a_large_vocabulary_get_the_same_in_any_batch(name: str):
    generator = torch.Generator().manual_seed(3)
    spreads = torch.logspace(-1, 1, 12)[:, None]
    scores = torch.randn(12, 49_152, generator=generator) * spreads
    value = torch.full((12,), 30.0 if name == "top_k" else 0.8, dtype=torch.float64)
    together = scores.clone()

    keep_(together, [(name, value)])

    wanted = expected(scores, [(name, value)])
    for i in range(12):
        alone = scores[i : i + 1].clone()
        keep_(alone, [(name, value[i : i + 1])])
        assert torch.equal(alone[0], together[i])
        assert torch.equal(alone[0], wanted[i])


@given(seed=st.integers(0, 1000), nudge=st.sampled_from([-1e-6, -1e-9, 0.0, 1e-9, 1e-6]))
def test_mass_that_just_reaches_a_token_is_told_from_one_that_just_does_not(
    seed: int, nudge: float
):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, 1500, generator=generator) * 3
    ordered = scores.double().softmax(-1).sort(descending=True).values
    place = int(torch.randint(0, 60, (1,), generator=generator))
    value = (ordered.cumsum(-1)[:, place] + nudge).clamp(1e-9, 1 - 1e-9)
    wanted = expected(scores, [("top_p", value)])

    keep_(scores, [("top_p", value)])

    assert torch.equal(scores, wanted)
