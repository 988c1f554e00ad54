"""What becomes of a text job: what its texts gain while it runs, and its result in the end.

Workers write these, and renderers in `api` make every protocol's answers of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from neodim_sampling.prompt_items import PromptItem


class FinishReason(StrEnum):
    """Why a sequence ended."""

    LENGTH = "length"
    STOP = "stop"
    END_OF_TEXT = "end_of_text"
    CANCELLED = "cancelled"


class Alternative(msgspec.Struct, frozen=True, array_like=True):
    """A token that might have come.

    Args:
        token: its id.
        text: what it spells by itself.
        log_prob: natural logarithm of its probability.
    """

    token: int
    text: str
    log_prob: float


class TokenScore(msgspec.Struct, frozen=True, array_like=True):
    """How likely a token of a text was, by the model's own scores: nothing of the request counts.

    Args:
        token: its id.
        text: what it added to the text; the texts of all tokens together are the text.
        log_prob: natural logarithm of its probability; None for a text's first token.
        top: the most likely tokens at its place, best first.
        alone: what it spells by itself, told of raw jobs.
        is_special: whether it is a special token, told of raw jobs.
    """

    token: int
    text: str
    log_prob: float | None
    top: tuple[Alternative, ...] = ()
    alone: str = ""
    is_special: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReport:
    """What became of the prompt; all counts are in tokens.

    Args:
        echo: its tokens, when the request asks for them; their log-probabilities are None unless
            it asks for those too.
        items: of a prompt of items, those that were read where they are not the client's.
    """

    preamble: str
    used_prompt: str
    n_preamble: int
    n_original_prompt: int
    n_original_input: int
    n_used_prompt: int
    n_used_input: int
    echo: tuple[TokenScore, ...] | None = None
    items: tuple[PromptItem, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PenaltyReport:
    """What was under repetition penalty; all zero when it was off.

    Ranges and counts are in tokens; those at the end belong to the last sampling step of the
    first sequence.
    """

    text_at_start: str = ""
    n_tokens_at_start: int = 0
    range_at_start: int = 0
    n_tokens_at_end: int = 0
    range_at_end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceResult:
    """One generated text: `text` + `stop_match` + `tail` is all of it.

    Args:
        text: up to the stop string.
        stop_string: the entry of the request's list that matched; "" = none.
        stop_match: the text that matched.
        tail: what follows the match.
        output_text: input and everything generated.
        penalty_text_at_end: the text under repetition penalty at the last step.
        tokens: ids of everything generated.
        finish_reason: why it ended.
        scores: of `tokens`, when log-probabilities were asked for.
    """

    text: str
    stop_string: str
    stop_match: str
    tail: str
    output_text: str
    penalty_text_at_end: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason
    scores: tuple[TokenScore, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """What one sequence gained: tokens, and the text that is certain to stay.

    Args:
        tokens: all that came; the text of the last ones may still be held back.
        cuts: lengths of the parts in which the text came; empty = in one.
        scores: of the tokens, when log-probabilities are needed.
        echo: tokens of the prompt, which come before all others where they are asked for.
    """

    sequence: int
    text: str
    tokens: tuple[int, ...]
    scores: tuple[TokenScore, ...] = ()
    cuts: tuple[int, ...] = ()
    echo: tuple[TokenScore, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Memory of one GPU around a job, in bytes, in the order start, end, min, max."""

    name: str
    total: int
    reserved: tuple[int, int, int, int]
    allocated: tuple[int, int, int, int]
    free: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextResult:
    """All that a protocol may want to tell of a finished text job.

    Args:
        n_generated: tokens added to every sequence, padding after an early end included.
        n_made: tokens that were generated over all sequences, those not kept included.
        n_candidates: how many sequences there were, those not kept included.
        answer_fields: as the job has them.
        is_partial: whether the job was cancelled before its end.
    """

    prompt: PromptReport
    penalty: PenaltyReport
    sequences: tuple[SequenceResult, ...]
    n_generated: int
    n_made: int = 0
    n_candidates: int = 1
    answer_fields: tuple[str, ...] = ()
    devices: tuple[DeviceMemory, ...] = ()
    is_partial: bool = False


def join_deltas(sequence: int, deltas: Sequence[TextDelta]) -> TextDelta:
    """What a sequence gained by several deltas, in their order."""
    texts = [each.text for each in deltas if each.text]
    return TextDelta(
        sequence=sequence,
        text="".join(each.text for each in deltas),
        tokens=tuple(token for each in deltas for token in each.tokens),
        scores=tuple(score for each in deltas for score in each.scores),
        cuts=tuple(map(len, texts)) if len(texts) > 1 else (),
        echo=tuple(score for each in deltas for score in each.echo),
    )
