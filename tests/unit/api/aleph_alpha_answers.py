"""Tokens, results and records as the tests of Aleph Alpha's answers need them."""

from __future__ import annotations

from dataclasses import replace

from standard_answers import record
from standard_answers import result as plain_result
from standard_answers import sequence as plain_sequence

from workers.contract.text_result import Alternative, FinishReason, TokenScore

END = "<|end|>"

__all__ = ["END", "alternatives", "record", "result", "sequence", "token", "tokens"]


def token(text, log_prob=-1.0, *, id_=0, alone=None, top=(), is_special=False):
    """A token that adds a text; that of the end of texts is special."""
    spelt = text if alone is None else alone
    return TokenScore(id_, text, log_prob, top, spelt, is_special or text == END)


def tokens(*texts):
    """A token for each text."""
    return tuple(token(each) for each in texts)


def alternatives(*pairs):
    """Alternatives with ids 0, 1, 2, ... of texts and log-probabilities."""
    return tuple(Alternative(n, text, log_prob) for n, (text, log_prob) in enumerate(pairs))


def sequence(*scores, stop="", reason=FinishReason.LENGTH):
    """A text of tokens, which a stop string that is in it ends."""
    whole = "".join(each.text for each in scores)
    text = whole[: whole.index(stop)] if stop else whole
    ids = tuple(each.token for each in scores)
    made = plain_sequence(text, tokens=ids, stop=stop, scores=scores)
    return replace(made, finish_reason=FinishReason.STOP if stop else reason)


def result(*sequences, fields=(), n_candidates=None, items=None, **others):
    """A result with the fields that its answer is to have."""
    made = plain_result(*sequences, **others)
    return replace(
        made,
        prompt=replace(made.prompt, items=items),
        answer_fields=fields,
        n_candidates=len(sequences) if n_candidates is None else n_candidates,
    )
