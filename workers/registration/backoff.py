"""When to try again what did not work."""

from __future__ import annotations

from collections.abc import Callable

FIRST_S = 1.0
LONGEST_S = 30.0


class Backoff:
    """Waits that double from one failure to the next.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._not_before = 0.0
        self.n_failures = 0

    def is_over(self) -> bool:
        """Whether it may be tried now."""
        return self.n_failures == 0 or self._clock() >= self._not_before

    def fail(self) -> None:
        """It did not work."""
        # The exponent is bounded, or a node that is away for days would overflow a float.
        wait_s = min(LONGEST_S, FIRST_S * 2 ** min(self.n_failures, 10))
        self._not_before = self._clock() + wait_s
        self.n_failures += 1

    def reset(self) -> None:
        """It worked, or there is nothing to try."""
        self.n_failures = 0
