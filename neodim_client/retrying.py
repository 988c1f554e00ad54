"""Whether a request is sent again, and when."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and for how long a request is tried.

    Waits double from one try to the next, and are shortened by chance, up to a half, so that many
    clients do not come back in one moment. A longer wait that the server asks for is kept.

    Args:
        attempts: tries in all, 1 = none is repeated.
        total_s: seconds from the first failure to the last try's beginning: a try itself may wait
            long in the server's line.
        first_wait_s: wait behind the first try.
        longest_wait_s: what waits double up to.

    Raises:
        ValueError: naming the field.
    """

    attempts: int = 8
    total_s: float = 120.0
    first_wait_s: float = 0.5
    longest_wait_s: float = 16.0

    def __post_init__(self) -> None:
        """Refuse bounds that are none."""
        for each in fields(self):
            value = getattr(self, each.name)
            lowest = 1 if each.name == "attempts" else 0
            if not lowest <= value < math.inf:
                problem = f"must be a number of at least {lowest}, not {value!r}"
                raise ValueError(f"{each.name}: {problem}")


class Retries:
    """The tries of one request; the first is being made.

    Args:
        policy: their bounds.
        clock: seconds that only grow.
        chance: draws from 0 to 1.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._chance = chance
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what failed: it went on in between."""
        self.n_failed = 0
        """Tries that failed."""
        self._failed_first: float | None = None

    def next_wait_s(self, asked_s: float | None = None) -> float | None:
        """Seconds to wait before the next try, None = there is to be none.

        Args:
            asked_s: what the server wants at least, None = it does not say.
        """
        policy, now = self._policy, self._clock()
        if self._failed_first is None:
            self._failed_first = now
        self.n_failed += 1
        # From some power on a float cannot hold it, and the wait is long past its bound.
        doubled_s = policy.first_wait_s * 2.0 ** min(self.n_failed - 1, 60)
        wait_s = min(doubled_s, policy.longest_wait_s) * (1 - self._chance() / 2)
        if asked_s is not None and asked_s >= wait_s:
            wait_s = asked_s + policy.first_wait_s * self._chance()
        is_late = now + wait_s > self._failed_first + policy.total_s
        return None if self.n_failed >= policy.attempts or is_late else wait_s
