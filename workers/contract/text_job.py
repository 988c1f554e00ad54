"""What a text job is, whatever the protocol: the request in canonical form and its result.

Adapters in `api` translate into `TextJob` and render from `TextResult`; workers know only these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import (
    ConstraintParams,
    PreamblePrompt,
    RepetitionPenaltyParams,
    StopParams,
    WarperParams,
)

SEED_LIMIT = 2**63
"""Seeds are integers from 0 up to, not including, this."""

MAX_SEQUENCES = 256
"""Most sequences of one job, whatever the worker's slots."""


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
        prompt: the text to complete and how it is made to fit.
        max_new_tokens: tokens to generate for each sequence, >= 0.
        n_sequences: independent continuations of the one prompt.
        seed: start of the randomness; the same seed gives the same text.
        warpers: how scores become probabilities.
        penalty: repetition penalty; None = off.
        constraints: which tokens are forbidden.
        stops: which text ends the generation; None = none.
    """

    model: str
    prompt: PreamblePrompt
    max_new_tokens: int
    seed: int
    n_sequences: int = 1
    warpers: WarperParams = field(default_factory=WarperParams)
    penalty: RepetitionPenaltyParams | None = None
    constraints: ConstraintParams = field(default_factory=ConstraintParams)
    stops: StopParams | None = None

    def __post_init__(self) -> None:
        """Check the counts, naming the Neodim field at fault."""
        if self.max_new_tokens < 0:
            raise InvalidParams("generated_tokens_count", "must be at least 0")
        if not 1 <= self.n_sequences <= MAX_SEQUENCES:
            raise InvalidParams("sequences_count", f"must be from 1 to {MAX_SEQUENCES}")
        if not 0 <= self.seed < SEED_LIMIT:
            raise InvalidParams("seed", f"must be from 0 to {SEED_LIMIT - 1}")
        if self.warpers.penalty_alpha is not None and self.n_sequences > 1:
            raise InvalidParams(
                "sequences_count",
                "must be 1 with penalty_alpha: contrastive search has one result",
            )

    @property
    def n_expected_tokens(self) -> int:
        """Tokens over all sequences when none ends early."""
        return self.max_new_tokens * self.n_sequences


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReport:
    """What became of the prompt; all counts are in tokens."""

    preamble: str
    used_prompt: str
    n_preamble: int
    n_original_prompt: int
    n_original_input: int
    n_used_prompt: int
    n_used_input: int


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
    """

    text: str
    stop_string: str
    stop_match: str
    tail: str
    output_text: str
    penalty_text_at_end: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """What one sequence gained: tokens, and the text that is certain to stay."""

    sequence: int
    text: str
    tokens: tuple[int, ...]


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
        is_partial: whether the job was cancelled before its end.
    """

    prompt: PromptReport
    penalty: PenaltyReport
    sequences: tuple[SequenceResult, ...]
    n_generated: int
    devices: tuple[DeviceMemory, ...] = ()
    is_partial: bool = False


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
