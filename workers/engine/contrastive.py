"""Contrastive search: each step tries the likeliest tokens and keeps the least repetitive one.

Su et al., "A Contrastive Framework for Neural Text Generation" (arXiv:2202.06417), section 3.
"""

from __future__ import annotations

import torch

from neodim_sampling.contrastive import best_candidate, candidates
from neodim_sampling.pipeline import shape_scores
from workers.engine.sequence import Scores, Sequence
from workers.engine.text_model import TextModel

CANDIDATES_AT_ONCE = 32
"""Candidates of one forward pass: their keys and values are copies of the whole row."""


def contrastive_step(model: TextModel, sequence: Sequence) -> int | None:
    """The next token of a sequence, which is then in the cache already.

    None where the constraints forbid every one. No candidate brings an excluded text.
    """
    warpers = sequence.row.settings.warpers
    assert warpers.penalty_alpha is not None, "only for contrastive search"
    assert warpers.top_k is not None, "contrastive search has a top_k"
    assert sequence.scores is not None, "the sequence was prefilled"
    logits = sequence.scores.logits[sequence.scores.row]
    scores = shape_scores(logits[None], [sequence.row])[0]
    ids = candidates(scores, warpers.top_k)
    while sequence.rules_out(ids.tolist()):
        scores = shape_scores(logits[None], [sequence.row])[0]
        ids = candidates(scores, warpers.top_k)
    if len(ids) == 0:
        return None
    tried = [
        model.try_candidates(sequence.held_slot, part, sequence.n_held)
        for part in ids.split(CANDIDATES_AT_ONCE)
    ]
    logits = torch.cat([each for each, _, _ in tried])
    hidden = torch.cat([each for _, each, _ in tried])
    best = best_candidate(
        scores.softmax(-1)[ids], hidden, torch.cat(sequence.context), warpers.penalty_alpha
    )
    _, _, handle = tried[best // CANDIDATES_AT_ONCE]
    handle.keep(best % CANDIDATES_AT_ONCE)
    sequence.n_held += 1
    sequence.scores = Scores(logits, best)
    sequence.context = [*sequence.context, hidden[best : best + 1]]
    return int(ids[best])
