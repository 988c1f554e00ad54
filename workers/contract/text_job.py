"""What a text job is, whatever the protocol: the request in canonical form and its result.

Adapters in `api` translate into `TextJob` and render from `TextResult`; workers know only these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import (
    AdditiveParams,
    ChatPrompt,
    ConstraintParams,
    PlainPrompt,
    PreamblePrompt,
    RepetitionPenaltyParams,
    StopParams,
    WarperParams,
)

SEED_LIMIT = 2**63
"""Seeds are integers from 0 up to, not including, this."""

MAX_SEQUENCES = 256
"""Most sequences of one job, whatever the worker's slots."""

MAX_TOP_LOG_PROBS = 20
"""Most alternatives that are told of one token."""


class FinishReason(StrEnum):
    """Why a sequence ended."""

    LENGTH = "length"
    STOP = "stop"
    END_OF_TEXT = "end_of_text"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextJob:
    """One request for generated text, valid by construction.

    Args:
        model: name of the model, as clients know it.
        prompt: the text to complete and how it is made to fit, or a conversation.
        max_new_tokens: tokens to generate for each sequence, >= 0; None = as many as have room.
        n_sequences: independent continuations of the one prompt.
        n_kept: how many of them the result has, those with the highest mean log-probability of a
            token first; None = all, in their order.
        seed: start of the randomness; the same seed gives the same text.
        log_probs: alternatives to tell of every token, with its own log-probability, 0 ... 20;
            None = no log-probabilities.
        additive: biases and additive penalties.
        user: who asks, in the client's words; "" = not said.
        warpers: how scores become probabilities.
        penalty: repetition penalty; None = off.
        constraints: which tokens are forbidden.
        stops: which text ends the generation; None = none.
    """

    model: str
    prompt: PreamblePrompt | PlainPrompt | ChatPrompt
    max_new_tokens: int | None
    seed: int
    n_sequences: int = 1
    n_kept: int | None = None
    log_probs: int | None = None
    additive: AdditiveParams = field(default_factory=AdditiveParams)
    user: str = ""
    warpers: WarperParams = field(default_factory=WarperParams)
    penalty: RepetitionPenaltyParams | None = None
    constraints: ConstraintParams = field(default_factory=ConstraintParams)
    stops: StopParams | None = None

    def __post_init__(self) -> None:
        """Check the counts, naming the Neodim field at fault."""
        if self.max_new_tokens is not None and self.max_new_tokens < 0:
            raise InvalidParams("generated_tokens_count", "must be at least 0")
        if not 1 <= self.n_sequences <= MAX_SEQUENCES:
            raise InvalidParams("sequences_count", f"must be from 1 to {MAX_SEQUENCES}")
        if self.n_kept is not None and not 1 <= self.n_kept <= self.n_sequences:
            raise InvalidParams("n_kept", "must be from 1 to sequences_count")
        if self.log_probs is not None and not 0 <= self.log_probs <= MAX_TOP_LOG_PROBS:
            raise InvalidParams("log_probs", f"must be from 0 to {MAX_TOP_LOG_PROBS}")
        if not 0 <= self.seed < SEED_LIMIT:
            raise InvalidParams("seed", f"must be from 0 to {SEED_LIMIT - 1}")
        if self.warpers.penalty_alpha is not None and self.n_sequences > 1:
            raise InvalidParams(
                "sequences_count",
                "must be 1 with penalty_alpha: contrastive search has one result",
            )

    @property
    def n_expected_tokens(self) -> int:
        """Tokens over all sequences when none ends early; 0 = not known before it runs."""
        return (self.max_new_tokens or 0) * self.n_sequences

    @property
    def needs_log_probs(self) -> bool:
        """Whether the log-probabilities of generated tokens have to be known."""
        return self.log_probs is not None or self.n_kept is not None


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
    """

    token: int
    text: str
    log_prob: float | None
    top: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReport:
    """What became of the prompt; all counts are in tokens.

    Args:
        echo: its tokens, when the request asks for them; their log-probabilities are None unless
            it asks for those too.
    """

    preamble: str
    used_prompt: str
    n_preamble: int
    n_original_prompt: int
    n_original_input: int
    n_used_prompt: int
    n_used_input: int
    echo: tuple[TokenScore, ...] | None = None


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
    """

    sequence: int
    text: str
    tokens: tuple[int, ...]
    scores: tuple[TokenScore, ...] = ()
    cuts: tuple[int, ...] = ()


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
        is_partial: whether the job was cancelled before its end.
    """

    prompt: PromptReport
    penalty: PenaltyReport
    sequences: tuple[SequenceResult, ...]
    n_generated: int
    n_made: int = 0
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
    )


def encode_job(job: TextJob) -> bytes:
    """A job as JSON."""
    return msgspec.json.encode(job)


def decode_job(body: bytes) -> TextJob:
    """The job that `encode_job` wrote.

    Raises:
        msgspec.ValidationError: not a job of this version.
        InvalidParams: a value is out of its range.
    """
    return msgspec.json.decode(body, type=TextJob)


def encode_result(result: TextResult) -> bytes:
    """A result as JSON."""
    return msgspec.json.encode(result)


def decode_result(body: bytes) -> TextResult:
    """The result that `encode_result` wrote.

    Raises:
        msgspec.ValidationError: not a result of this version.
    """
    return msgspec.json.decode(body, type=TextResult)
