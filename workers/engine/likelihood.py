"""How likely tokens were by the model's own scores, before anything that requests do to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

LEAST = -9999.0
"""What is told of a token that the model holds to be impossible: JSON has no infinity."""

ROWS_AT_ONCE = 32
"""Places of a prompt that are scored at once: their scores take a vocabulary's memory each."""


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Of the token at one place.

    Args:
        log_prob: natural logarithm of its probability.
        top: ids of the most likely tokens there with the same of theirs, best first.
    """

    log_prob: float
    top: tuple[tuple[int, float], ...]


def likelihoods(
    logits: Tensor, tokens: Sequence[int], n_top: int, n_vocab: int
) -> list[Likelihood]:
    """How likely each row's token is.

    Args:
        logits: [B, V] float, the model's scores; left alone.
        tokens: B ids.
        n_top: alternatives, 0 = none.
        n_vocab: size of the real vocabulary; an id from here on is no alternative.
    """
    every = logits.float().log_softmax(-1).clamp_(min=LEAST)
    ids = torch.tensor(tokens, device=every.device)
    own = every.gather(-1, ids[:, None])
    best = every[:, :n_vocab].topk(n_top)
    rows = zip(own[:, 0].tolist(), best.indices.tolist(), best.values.tolist(), strict=True)
    return [Likelihood(own, tuple(zip(top, values, strict=True))) for own, top, values in rows]


def prompt_likelihoods(
    score: Callable[[Tensor], Tensor],
    hidden: Tensor,
    tokens: Sequence[int],
    n_top: int,
    n_vocab: int,
) -> list[Likelihood]:
    """How likely each token of a text was behind those before it.

    Args:
        score: the model's scores [B, V] of last hidden states [B, H].
        hidden: [T, H], states in front of each token.
        tokens: T ids.
        n_top: alternatives, 0 = none.
        n_vocab: size of the real vocabulary.
    """
    found: list[Likelihood] = []
    for first in range(0, len(tokens), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        found += likelihoods(score(hidden[part]), tokens[part], n_top, n_vocab)
    return found
