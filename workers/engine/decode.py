"""One token for each of a batch of sequences: read the newest ones, shape the scores, draw."""

from __future__ import annotations

import torch
from torch import Tensor

from neodim_sampling.pipeline import choose, shape_scores
from workers.engine.contrastive import contrastive_step, is_contrastive
from workers.engine.sequence import Sequence
from workers.engine.text_model import TextModel


def next_tokens(model: TextModel, sequences: list[Sequence]) -> list[int | None]:
    """The next token of each sequence; None where its constraints forbid every one.

    Args:
        model: has the sequences in its cache, without their newest tokens.
        sequences: none, or only one, of contrastive search.
    """
    if is_contrastive(sequences[0]):
        return [contrastive_step(model, sequences[0])]
    rows = [each.row for each in sequences]
    choice = choose(shape_scores(_logits(model, sequences), rows), rows)
    # The one synchronisation with the device in a step.
    reply = torch.stack((choice.tokens, choice.is_empty.long())).tolist()
    return [None if is_empty else token for token, is_empty in zip(*reply, strict=True)]


def _logits(model: TextModel, sequences: list[Sequence]) -> Tensor:
    """[B, V] scores of the sequences' next tokens, from the prefill or by reading the last."""
    decoding = sorted(
        (each for each in sequences if each.next_logits is None), key=lambda each: each.slot or 0
    )
    found = {each: each.next_logits for each in sequences}
    if decoding:
        outcome = model.decode(
            [each.slot or 0 for each in decoding],
            [each.row.generated[-1] for each in decoding],
            [each.n_cached for each in decoding],
        )
        found.update(zip(decoding, outcome.logits, strict=True))
    return torch.stack([logits for logits in found.values() if logits is not None])
