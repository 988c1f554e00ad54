"""What can be asked of penalties and biases, checked once: a value that exists is valid.

Nothing here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from neodim_sampling.errors import InvalidParams
from neodim_sampling.ranges import check_range


class IncludeGenerated(StrEnum):
    """How generated tokens enter the text under repetition penalty."""

    SLIDE = "slide"
    EXPAND = "expand"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionPenaltyParams:
    """Which tokens are made less likely because they occurred, and by how much.

    Args:
        penalty: > 0; above 1 makes seen tokens less likely, below 1 more.
        range_tokens: length of the penalised window at the start, >= 1; None = the whole text.
        slope: > 0, steepness of the curve from 1 (oldest) to `penalty` (newest); None = flat.
        include_preamble: whether the preamble is part of the text under penalty.
        include_generated: how generated tokens enter it.
        truncate_to_input: whether the window never exceeds the tokens there are.
        prompt: a text that stands for the prompt in the penalty only; None = the prompt itself.
    """

    penalty: float
    range_tokens: int | None = None
    slope: float | None = None
    include_preamble: bool = False
    include_generated: IncludeGenerated = IncludeGenerated.SLIDE
    truncate_to_input: bool = False
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Check every range, naming the field at fault."""
        check_range("repetition_penalty", self.penalty, "above 0", low=0, low_open=True)
        check_range("repetition_penalty_range", self.range_tokens, "at least 1", low=1)
        check_range("repetition_penalty_slope", self.slope, "above 0", low=0, low_open=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustmentParams:
    """What is done to the model's scores before anything else looks at them.

    Penalties look at the *counted text*: the generated tokens, the prompt's and those of
    `counted_text`, as far as each is asked for.

    Args:
        logit_bias: added to the scores of single token ids, each id once.
        presence_penalty: taken once from every token of the counted text; negative favours them.
        frequency_penalty: taken once for each time that a token is there.
        sequence_penalty: taken from tokens that would repeat a run of the counted text.
        sequence_min_length: >= 2, tokens of the shortest such run.
        is_presence_multiplicative: whether the score is divided by 1 + penalty (multiplied, where
            it is negative) instead; the penalty is above -1 then.
        is_frequency_multiplicative: the same for each time that the token is there.
        is_sequence_multiplicative: the same for runs.
        counts_generated: whether generated tokens are counted.
        counts_prompt: whether the prompt's are.
        counted_text: a text that is counted whatever else is; "" = none.
        exceptions: texts whose tokens are never penalised.
    """

    logit_bias: tuple[tuple[int, float], ...] = ()
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    sequence_penalty: float = 0.0
    sequence_min_length: int = 2
    is_presence_multiplicative: bool = False
    is_frequency_multiplicative: bool = False
    is_sequence_multiplicative: bool = False
    counts_generated: bool = True
    counts_prompt: bool = False
    counted_text: str = ""
    exceptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every range, naming the field at fault."""
        for name in ("presence", "frequency", "sequence"):
            penalty = getattr(self, f"{name}_penalty")
            check_range(f"{name}_penalty", penalty, "finite")
            if getattr(self, f"is_{name}_multiplicative"):
                allowed = "above -1 where it is multiplicative"
                check_range(f"{name}_penalty", penalty, allowed, low=-1, low_open=True)
        check_range("sequence_penalty_min_length", self.sequence_min_length, "at least 2", low=2)
        if not all(self.exceptions):
            raise InvalidParams("penalty_exceptions", "must be non-empty strings")
        for token, bias in self.logit_bias:
            check_range("logit_bias", token, "token ids from 0 on", low=0)
            check_range("logit_bias", bias, "finite numbers")
