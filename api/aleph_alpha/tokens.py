"""Tokens as completions tell them: as text, one by one, and with log-probabilities."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from workers.contract.text_result import SequenceResult, TokenScore

LOG_PROBS, RAW_COMPLETION, COMPLETION_TOKENS = "log_probs", "raw_completion", "completion_tokens"
"""Fields that are there only where a request asks for them."""


def tell(tokens: Sequence[TokenScore], answer_fields: Collection[str]) -> dict[str, Any]:
    """What a completion, or a part of one, tells of its tokens.

    Args:
        tokens: whole ones, in their order.
        answer_fields: those that are asked for.
    """
    told: dict[str, Any] = {"completion": "".join(map(_visible_text, tokens))}
    if LOG_PROBS in answer_fields:
        told[LOG_PROBS] = [_log_probs(each) for each in tokens]
    if RAW_COMPLETION in answer_fields:
        told[RAW_COMPLETION] = "".join(each.text for each in tokens)
    if COMPLETION_TOKENS in answer_fields:
        told[COMPLETION_TOKENS] = [each.alone for each in tokens]
    return told


def kept_tokens(sequence: SequenceResult) -> Sequence[TokenScore]:
    """The tokens of a text that are told: those that have no part of the stop string."""
    scores = sequence.scores or ()
    return scores[: n_within(scores, len(sequence.text))] if sequence.stop_match else scores


def n_within(tokens: Sequence[TokenScore], n_characters: int) -> int:
    """How many tokens lie within a text's first characters.

    Parts of a character count with the token that completes it.
    """
    n_tokens = end = 0
    for n, each in enumerate(tokens, 1):
        end += len(each.text)
        if end > n_characters:
            break
        if each.text:
            n_tokens = n
    return n_tokens


def _visible_text(token: TokenScore) -> str:
    """What a token adds to the text without special ones: of these, the end of what was before."""
    return token.text.removesuffix(token.alone) if token.is_special else token.text


def _log_probs(token: TokenScore) -> dict[str, float]:
    """The most likely tokens at its place, best first, and itself, by their texts.

    Of several with one text it counts itself, else the likeliest.
    """
    if token.log_prob is None:
        return {}
    found: dict[str, float] = {}
    for each in token.top:
        if each.text != token.alone or each.token == token.token:
            found.setdefault(each.text, each.log_prob)
    found[token.alone] = token.log_prob
    return found
