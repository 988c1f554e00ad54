"""Which tokens a client is told the log-probabilities of, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workers.contract.text_result import Alternative, TokenScore

UNFINISHED = "\ufffd"


class ScoreLine:
    """The tokens of one text in their order, told as far as its text is certain.

    A token is told once some text that begins where it begins is; so what belongs to a stop string
    and what ends a text is never told.
    """

    def __init__(self) -> None:
        self._waiting: list[TokenScore] = []
        self.n_told_characters = 0
        """Characters of all tokens told so far."""

    def add(self, scores: Sequence[TokenScore]) -> None:
        """Take the next tokens."""
        self._waiting.extend(scores)

    def up_to(self, n_characters: int) -> list[TokenScore]:
        """The tokens not told yet that begin within so many characters of the text."""
        told: list[TokenScore] = []
        while self._waiting and self.n_told_characters < n_characters:
            told.append(self._waiting.pop(0))
            self.n_told_characters += len(told[-1].text)
        return told


def scores_of_text(scores: Sequence[TokenScore], text: str) -> list[TokenScore]:
    """The tokens that spell a text, of all that were generated with it."""
    line = ScoreLine()
    line.add(scores)
    return line.up_to(len(text))


def chat_log_probs(scores: Sequence[TokenScore] | None) -> dict[str, Any] | None:
    """The `logprobs` of a chat's choice; None = not asked for."""
    if scores is None:
        return None
    return {"content": [_chat_entry(each) for each in scores], "refusal": None}


def completion_log_probs(
    scores: Sequence[TokenScore] | None, offset: int = 0
) -> dict[str, Any] | None:
    """The `logprobs` of a completion's choice; None = not asked for.

    Args:
        scores: of its tokens.
        offset: characters of the choice's text before them.
    """
    if scores is None:
        return None
    offsets = []
    for each in scores:
        offsets.append(offset)
        offset += len(each.text)
    return {
        "tokens": [each.text for each in scores],
        "token_logprobs": [each.log_prob for each in scores],
        "top_logprobs": [_by_text(each) for each in scores],
        "text_offset": offsets,
    }


def _chat_entry(score: TokenScore) -> dict[str, Any]:
    return {
        "token": score.text,
        "logprob": score.log_prob,
        "bytes": _bytes(score.text),
        "top_logprobs": [_alternative(each) for each in score.top],
    }


def _alternative(each: Alternative) -> dict[str, Any]:
    return {"token": each.text, "logprob": each.log_prob, "bytes": _bytes(each.text)}


def _bytes(text: str) -> list[int] | None:
    """UTF-8 of a token; None of a part of a character, whose bytes its text does not tell."""
    return None if not text or UNFINISHED in text else list(text.encode())


def _by_text(score: TokenScore) -> dict[str, float] | None:
    """The likeliest of each text, and the token itself; None where nothing is known."""
    if score.log_prob is None:
        return None
    found: dict[str, float] = {}
    for each in score.top:
        found.setdefault(each.text, each.log_prob)
    found.setdefault(score.text, score.log_prob)
    return found
