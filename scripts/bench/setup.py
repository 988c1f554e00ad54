"""What all parts of the engine's bench measure with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.loads import PromptMaker
from bench.model_choice import ModelChoice
from bench.our_engine import OurEngine
from bench.rounds import SETTLE_S, Measure, alternate


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A model, prompts for it, and how much is asked for.

    Args:
        choice: the model.
        maker: makes its prompts.
        rounds: rounds that count.
        batches: rows at once, where a part looks at several numbers.
        prompt_tokens: of each short prompt.
        new_tokens: of each request.
        long_prompt: tokens of the prompt whose reading is timed.
        interruption: tokens of the prompt that arrives while rows run.
        filled: tokens that rows hold, where a part looks at several.
        waiting: waiting requests, where a part looks at several numbers.
        settle_s: pause before each measurement that takes turns with others.
    """

    choice: ModelChoice
    maker: PromptMaker
    rounds: int = 5
    batches: Sequence[int] = (1, 8, 32, 64)
    prompt_tokens: int = 10
    new_tokens: int = 64
    long_prompt: int = 900
    interruption: int = 1000
    filled: Sequence[int] = (64, 256, 512, 1000, 1500, 2000)
    waiting: Sequence[int] = (1, 10, 100, 1000, 10_000)
    settle_s: float = SETTLE_S

    def engine(
        self, slots: int, *, max_length: int | None = None, is_general: bool = False
    ) -> OurEngine:
        """A new engine, with the model loaded for it."""
        return OurEngine(self.choice, slots=slots, max_length=max_length, is_general=is_general)

    def alternate(self, measures: Mapping[str, Measure]) -> dict[str, list[float]]:
        """What each measure gave in each round, taken in turn."""
        return alternate(measures, self.rounds, self.settle_s)

    @property
    def lengths(self) -> str:
        """Said in a table's note."""
        return f"{self.prompt_tokens} + {self.new_tokens} tokens a row"
