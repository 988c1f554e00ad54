"""Contrastive search: among the likeliest tokens, the one that repeats the context least."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import normalize


def candidates(scores: Tensor, k: int) -> Tensor:
    """The k most probable tokens, fewer where fewer are possible.

    Args:
        scores: [V] float32 from `shape_scores`, left alone.
        k: >= 1.

    Returns:
        [<= k] int64 ids of probability > 0, likeliest first, lower ids first among equals.
    """
    kth = scores.topk(min(k, scores.shape[0])).values[-1]
    ids = ((scores >= kth) & (scores.softmax(0) > 0)).nonzero().flatten()
    order = scores[ids].sort(descending=True, stable=True).indices
    return ids[order[:k]]


def best_candidate(
    probabilities: Tensor, candidate_hidden: Tensor, context_hidden: Tensor, alpha: float
) -> int:
    """Index of the candidate that wins (arXiv:2202.06417, equation 5).

    A candidate's score is (1 - alpha) times its probability, less alpha times its highest cosine
    similarity to a token of the context; of equal scores the first wins.

    Args:
        probabilities: [k] float.
        candidate_hidden: [k, H] float, last hidden state of each candidate run one step further.
        context_hidden: [m, H] float, those of all tokens before, m >= 1.
        alpha: weight of the degeneration penalty.
    """
    seen = normalize(context_hidden.float(), dim=-1)
    similarity = (normalize(candidate_hidden.float(), dim=-1) @ seen.T).amax(-1)
    values = ((1 - alpha) * probabilities.float() - alpha * similarity).tolist()
    return max(range(len(values)), key=values.__getitem__)
