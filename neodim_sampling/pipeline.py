"""From the model's scores to a token: constraints, each row's warpers in its order, the draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from neodim_sampling import warpers
from neodim_sampling.constraints import constrain
from neodim_sampling.counter_random import exponentials
from neodim_sampling.parameters import WarperParams, resolve_order
from neodim_sampling.penalty import repetition_penalty
from neodim_sampling.row import SamplingRow

_WARPERS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "temperature": warpers.temperature,
    "top_k": warpers.top_k,
    "top_p": warpers.top_p,
    "typical": warpers.typical,
    "tfs": warpers.tfs,
    "top_a": warpers.top_a,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What came next.

    Args:
        tokens: [B] int64.
        is_empty: [B] bool, whether the row had no finite score, so that its token is no choice.
    """

    tokens: Tensor
    is_empty: Tensor


def shape_scores(logits: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """Turn the model's scores into those whose softmax the next token is drawn from.

    Args:
        logits: [B, V] float of any width, left alone.
        rows: B rows, each with its own settings.

    Returns:
        [B, V] float32, -inf for impossible tokens; `logits` itself when nothing is to be done.
    """
    scores = constrain(logits.float(), rows)
    groups: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(_active_warpers(row), []).append(i)
    if len(groups) == 1:
        return _warp(scores, rows, next(iter(groups)))
    for names, members in groups.items():
        if names:
            places = torch.tensor(members, device=scores.device)
            warped = _warp(scores[places], [rows[i] for i in members], names)
            scores = scores.index_copy(0, places, warped)
    return scores


def choose(scores: Tensor, rows: Sequence[SamplingRow]) -> Choice:
    """Draw each row's next token from the softmax of its scores.

    A race: every token waits for an exponentially distributed time with its probability as rate,
    and the first wins (the Gumbel-max trick in another form). So a score that differs in its last
    bits, as another batch makes it, changes the token only where two were about to tie, and the
    draw depends on nothing but the row's scores, seed, sequence and step.

    Args:
        scores: [B, V] float32 from `shape_scores`, left alone.
        rows: the same B rows.

    Returns:
        Tokens on the device of `scores`, never one of probability 0 unless the row is empty.
    """
    drawn = [i for i, row in enumerate(rows) if row.settings.warpers.top_k != 1]
    tokens = scores.argmax(-1)
    if len(drawn) == len(rows):
        tokens = _race(scores, rows)
    elif drawn:
        places = torch.tensor(drawn, device=scores.device)
        tokens[places] = _race(scores[places], [rows[i] for i in drawn])
    is_empty = ~scores.amax(-1).isfinite()
    return Choice(tokens.masked_fill(is_empty, 0), is_empty)


def _race(scores: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    places = torch.tensor([(row.seed, row.sequence, row.step) for row in rows], dtype=torch.int64)
    places = places.to(scores.device)
    times = exponentials(places[:, 0], places[:, 1], places[:, 2], scores.shape[-1])
    rates = (scores - scores.amax(-1, keepdim=True)).exp_()
    # The best token's rate is 1 and its time bounded, so one with a rate of 0 never wins.
    return rates.div_(times).argmax(-1)


def _active_warpers(row: SamplingRow) -> tuple[str, ...]:
    penalty = row.settings.penalty
    return _active(row.settings.warpers, penalty is not None and penalty.penalty != 1)


@lru_cache(maxsize=1024)
def _active(params: WarperParams, is_penalised: bool) -> tuple[str, ...]:
    """Names of the warpers that change anything, in their order."""
    values = {name: getattr(params, name) for name in _WARPERS}
    names = {name for name, value in values.items() if value is not None}
    if params.temperature == 1:
        names.remove("temperature")
    if is_penalised:
        names.add("repetition_penalty")
    return tuple(name for name in resolve_order(params.order) if name in names)


def _warp(scores: Tensor, rows: Sequence[SamplingRow], names: tuple[str, ...]) -> Tensor:
    for name in names:
        if name == "repetition_penalty":
            scores = repetition_penalty(scores, rows)
        else:
            values = [getattr(row.settings.warpers, name) for row in rows]
            scores = _WARPERS[name](scores, torch.tensor(values, dtype=torch.float64))
    return scores
