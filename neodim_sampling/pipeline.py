"""From the model's scores to a token: constraints, each row's warpers in its order, the draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import torch
from torch import Tensor

from neodim_sampling.adjustments import adjust
from neodim_sampling.constraints import constrain
from neodim_sampling.parameters import WARPERS, WarperParams, resolve_order
from neodim_sampling.penalty import repetition_penalty_
from neodim_sampling.race import race
from neodim_sampling.row import SamplingRow
from neodim_sampling.selection import keep_
from neodim_sampling.warpers import FILTERS, temperature_

_PENALTY = "repetition_penalty"


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
        [B, V] float32, -inf for impossible tokens; `logits` itself when nothing is to be done. Of
        a row with a top_k of 1 only the best score counts.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(_active_warpers(row), []).append(i)
    scores = constrain(adjust(logits.float(), rows), rows)
    if scores is logits and any(groups):
        scores = logits.clone()
    if len(groups) == 1:
        _warp_(scores, rows, next(iter(groups)))
        return scores
    for names, members in groups.items():
        if names:
            places = torch.tensor(members, device=scores.device)
            some = scores.index_select(0, places)
            _warp_(some, [rows[i] for i in members], names)
            scores.index_copy_(0, places, some)
    return scores


def choose(scores: Tensor, rows: Sequence[SamplingRow]) -> Choice:
    """Draw each row's next token from the softmax of its scores; the best one with a top_k of 1.

    Args:
        scores: [B, V] float32 from `shape_scores`, left alone.
        rows: the same B rows.

    Returns:
        Tokens on the device of `scores`, never one of probability 0 unless the row is empty.
    """
    drawn = [i for i, row in enumerate(rows) if row.settings.warpers.top_k != 1]
    if len(drawn) == len(rows):
        tokens = race(scores, rows)
    else:
        tokens = scores.argmax(-1)
        if drawn:
            places = torch.tensor(drawn, device=scores.device)
            tokens[places] = race(scores.index_select(0, places), [rows[i] for i in drawn])
    is_empty = ~scores.amax(-1).isfinite()
    return Choice(tokens.masked_fill(is_empty, 0), is_empty)


def _active_warpers(row: SamplingRow) -> tuple[str, ...]:
    penalty = row.settings.penalty
    return _active(row.settings.warpers, penalty is not None and penalty.penalty != 1)


@lru_cache(maxsize=1024)
def _active(params: WarperParams, is_penalised: bool) -> tuple[str, ...]:
    """Names of the warpers that change anything, in their order."""
    names = {name for name in WARPERS if getattr(params, name, None) is not None}
    if params.temperature == 1:
        names.remove("temperature")
    if is_penalised:
        names.add(_PENALTY)
    active = tuple(name for name in resolve_order(params.order) if name in names)
    if params.top_k == 1 and _PENALTY not in active[active.index("top_k") :]:
        # The best token is the one chosen, whatever else would be dropped beside it.
        return active[: active.index("top_k")]
    return active


def _warp_(scores: Tensor, rows: Sequence[SamplingRow], names: tuple[str, ...]) -> None:
    for is_filter, same in groupby(names, key=FILTERS.__contains__):
        if is_filter:
            keep_(scores, [(name, _values(rows, name)) for name in same])
            continue
        for name in same:
            if name == _PENALTY:
                repetition_penalty_(scores, rows)
            else:
                temperature_(scores, _values(rows, name))


def _values(rows: Sequence[SamplingRow], name: str) -> Tensor:
    values = [getattr(row.settings.warpers, name) for row in rows]
    return torch.tensor(values, dtype=torch.float64)
