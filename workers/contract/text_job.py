"""What a text job is, whatever the protocol: the request in canonical form.

Adapters in `api` translate into it, and workers know only it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import (
    ConstraintParams,
    StopParams,
    WarperParams,
)
from neodim_sampling.penalty_parameters import AdjustmentParams, RepetitionPenaltyParams
from neodim_sampling.prompt_items import ItemsPrompt
from neodim_sampling.prompts import ChatPrompt, PlainPrompt, PreamblePrompt

SEED_LIMIT = 2**63
"""Seeds are integers from 0 up to, not including, this."""

MAX_SEQUENCES = 256
"""Most sequences of one job, whatever the worker's slots."""

MAX_TOP_LOG_PROBS = 20
"""Most alternatives that are told of one token."""


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
        adjustments: biases, and penalties on what occurred.
        is_raw: whether special tokens are part of the text, for stop strings too, and tokens are
            told as they are spelt by themselves.
        answer_fields: of the answer, those that are there only where a request asks for them; for
            whoever writes the answer, workers hand them on.
        user: who asks, in the client's words; "" = not said.
        warpers: how scores become probabilities.
        penalty: repetition penalty; None = off.
        constraints: which tokens are forbidden.
        stops: which text ends the generation; None = none.
    """

    model: str
    prompt: PreamblePrompt | PlainPrompt | ChatPrompt | ItemsPrompt
    max_new_tokens: int | None
    seed: int
    n_sequences: int = 1
    n_kept: int | None = None
    log_probs: int | None = None
    adjustments: AdjustmentParams = field(default_factory=AdjustmentParams)
    is_raw: bool = False
    answer_fields: tuple[str, ...] = ()
    user: str = ""
    warpers: WarperParams = field(default_factory=WarperParams)
    penalty: RepetitionPenaltyParams | None = None
    constraints: ConstraintParams = field(default_factory=ConstraintParams)
    stops: StopParams | None = None

    def __post_init__(self) -> None:
        """Check the counts, naming the Neodim field at fault."""
        if self.max_new_tokens is not None and self.max_new_tokens < 0:
            raise InvalidParams("generated_tokens_count", "must be at least 0")
        least = self.constraints.min_new_tokens
        if self.max_new_tokens is not None and least > self.max_new_tokens:
            problem = f"must be at most the {self.max_new_tokens} tokens to generate, not {least}"
            raise InvalidParams("minimum_tokens", problem)
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
    def tells_tokens(self) -> bool:
        """Whether the result tells of every generated token."""
        return self.is_raw or self.log_probs is not None

    @property
    def echoes(self) -> bool:
        """Whether it tells of the prompt's own tokens too."""
        return isinstance(self.prompt, PlainPrompt | ItemsPrompt) and self.prompt.echo

    @property
    def has_independent_sequences(self) -> bool:
        """Whether no sequence has to wait for what becomes of the others, as Neodim's have to."""
        return not isinstance(self.prompt, PreamblePrompt)

    @property
    def needs_log_probs(self) -> bool:
        """Whether the log-probabilities of generated tokens have to be known."""
        return self.log_probs is not None or self.n_kept is not None
