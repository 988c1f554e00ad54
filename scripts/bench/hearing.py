"""What is noted of requests in the engine: when each token came, and how they ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from workers.contract.text_result import TextDelta
from workers.engine.generation import Generation


class Ear:
    """Hears of one request's tokens, and notes when."""

    def __init__(self) -> None:
        self.times_s: list[float] = []
        """When each token came, all sequences together; by `time.perf_counter`."""
        self.is_ended = False
        self.error: Exception | None = None

    def add(self, deltas: Sequence[TextDelta], n_generated: int) -> None:
        """Note what came."""
        now = time.perf_counter()
        self.times_s.extend(now for delta in deltas for _ in delta.tokens)

    def end(self, error: Exception | None) -> None:
        """Note the end."""
        self.is_ended = True
        self.error = error


@dataclass(frozen=True, slots=True)
class Request:
    """A request in the engine."""

    generation: Generation
    ear: Ear = field(default_factory=Ear)

    @property
    def n_tokens(self) -> int:
        """Tokens that it has."""
        return len(self.ear.times_s)


@dataclass(frozen=True, slots=True)
class Run:
    """Some requests, from their arrival to the end of the last.

    Args:
        seconds: wall time.
        n_tokens: tokens generated.
    """

    seconds: float
    n_tokens: int

    @property
    def tokens_per_s(self) -> float:
        """Throughput."""
        return self.n_tokens / self.seconds
