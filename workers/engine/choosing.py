"""A token for each of a batch of sequences whose scores are known."""

from __future__ import annotations

import torch
from torch import Tensor

from neodim_sampling.pipeline import choose, shape_scores
from workers.engine.contrastive import contrastive_step
from workers.engine.sequence import Scores, Sequence
from workers.engine.text_model import TextModel


def next_tokens(model: TextModel, sequences: list[Sequence]) -> dict[Sequence, int | None]:
    """The next token of each sequence; None where its constraints forbid every one.

    Args:
        model: for contrastive search, which reads while it chooses.
        sequences: their scores are known; none, or only one, of contrastive search.
    """
    if sequences[0].is_contrastive:
        return {sequences[0]: contrastive_step(model, sequences[0])}
    known = [(each, each.scores) for each in sequences if each.scores is not None]
    # Scores that one step made lie in order of their rows, and then need not be moved.
    known.sort(key=lambda each: each[1].row)
    rows = [sequence.row for sequence, _ in known]
    choice = choose(shape_scores(_together([scores for _, scores in known]), rows), rows)
    # The one synchronisation with the device in a step.
    reply = torch.stack((choice.tokens, choice.is_empty.long())).tolist()
    return {
        sequence: None if is_empty else token
        for (sequence, _), token, is_empty in zip(known, *reply, strict=True)
    }


def _together(parts: list[Scores]) -> Tensor:
    """[B, V] of B rows, without a copy where they are all there is of one tensor."""
    whole = parts[0].logits
    if all(each.logits is whole for each in parts):
        rows = [each.row for each in parts]
        return whole if rows == list(range(len(whole))) else whole[rows]
    return torch.stack([each.logits[each.row] for each in parts])
