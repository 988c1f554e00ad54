"""A token for each of a batch of sequences whose scores are known."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from neodim_sampling.pipeline import choose, shape_scores
from workers.engine.contrastive import contrastive_step
from workers.engine.likelihood import likelihoods
from workers.engine.sequence import Scores, Sequence
from workers.engine.text_model import TextModel

LIKELIEST = 32
"""Tokens that are looked at at once for excluded texts, after one was turned down."""


def next_tokens(model: TextModel, sequences: list[Sequence]) -> dict[Sequence, int | None]:
    """The next token of each sequence; None where its constraints forbid every one.

    Args:
        model: for contrastive search, which reads while it chooses.
        sequences: their scores are known; none, or only one, of contrastive search.
    """
    if sequences[0].is_contrastive:
        sequence, scores = sequences[0], sequences[0].scores
        token = contrastive_step(model, sequence)
        _tell([(sequence, scores, token)])
        return {sequence: token}
    known = [(each, each.scores) for each in sequences if each.scores is not None]
    # Scores that one step made lie in order of their rows, and then need not be moved.
    known.sort(key=lambda each: each[1].row)
    tokens = _chosen(known)
    _tell([(*each, tokens[each[0]]) for each in known])
    return tokens


def _chosen(known: list[tuple[Sequence, Scores]]) -> dict[Sequence, int | None]:
    """A token for each; where it would bring an excluded text, that row is chosen for again."""
    tokens: dict[Sequence, int | None] = {}
    for sequence, _ in known:
        # Not empty where a choice failed and is tried again.
        sequence.row.ruled_out.clear()
    left = known
    while left:
        rows = [sequence.row for sequence, _ in left]
        shaped = shape_scores(_together([scores for _, scores in left]), rows)
        choice = choose(shaped, rows)
        # The one synchronisation with the device in a step, unless a row is chosen for again.
        reply = torch.stack((choice.tokens, choice.is_empty.long())).tolist()
        again = []
        for place, (each, token, is_empty) in enumerate(zip(left, *reply, strict=True)):
            tokens[each[0]] = None if is_empty else token
            if not is_empty and each[0].rules_out([token]):
                _rule_out_likeliest(each[0], shaped[place], token)
                again.append(each)
        left = again
    return tokens


def _rule_out_likeliest(sequence: Sequence, scores: Tensor, token: int) -> None:
    """Forbid the likeliest tokens beside one that brought an excluded text, where they do too.

    Where many tokens have such a text, choosing would turn them down one by one.
    """
    best = scores.topk(min(LIKELIEST, len(scores)))
    possible = best.indices[best.values.isfinite()].tolist()
    sequence.rules_out([each for each in possible if each != token])


def _tell(chosen: list[tuple[Sequence, Scores | None, int | None]]) -> None:
    """Note how likely the tokens are of those sequences that are to tell it."""
    told = [
        (sequence, scores, token, sequence.n_alternatives)
        for sequence, scores, token in chosen
        if sequence.n_alternatives is not None and scores is not None and token is not None
    ]
    if not told:
        return
    sequences, scores, tokens, numbers = zip(*told, strict=True)
    n_vocab = min(each.row.settings.n_vocab for each in sequences)
    found = likelihoods(_together(list(scores)), tokens, max(numbers), n_vocab)
    for sequence, likelihood, n in zip(sequences, found, numbers, strict=True):
        sequence.likelihood = replace(likelihood, top=likelihood.top[:n])


def _together(parts: list[Scores]) -> Tensor:
    """[B, V] of B rows, without a copy where they are all there is of one tensor."""
    whole = parts[0].logits
    if all(each.logits is whole for each in parts):
        rows = [each.row for each in parts]
        return whole if rows == list(range(len(whole))) else whole[rows]
    return torch.stack([each.logits[each.row] for each in parts])
