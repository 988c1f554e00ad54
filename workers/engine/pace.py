"""How many prompt tokens a step may read without keeping running rows waiting."""

from __future__ import annotations

SMALLEST_BUDGET = 16
"""Prompt tokens that a step reads at least."""

READING_STEPS = 1.5
"""Time that prompts may add to a step, in ordinary steps."""

UNKNOWN_READING_STEPS = 1.9
"""The same where the time is a guess, which is never too low."""

_SMOOTHING = 0.3
_FADING = 0.98


class Pace:
    """Learns from the steps what prompts cost.

    Budgets are powers of two times the smallest. The time of one that was never used is guessed
    from the next smaller as twice as long, which is too long where a step is bound by its weights.

    Args:
        largest_budget: prompt tokens of a step when nothing else runs, or when they cost little.
    """

    def __init__(self, largest_budget: int) -> None:
        self._largest = max(1, largest_budget)
        self._step_s: float | None = None
        self._reading_s: dict[int, float] = {}

    def prompt_budget(self, n_running: int) -> int:
        """Most prompt tokens of the next step.

        Args:
            n_running: rows that get a token in it.
        """
        if not n_running or self._step_s is None:
            return self._largest
        budget = SMALLEST_BUDGET
        while budget < self._largest and self._is_bearable(2 * budget, self._step_s):
            budget *= 2
        return min(budget, self._largest)

    def observe(self, n_running: int, n_prompt_tokens: int, seconds: float) -> None:
        """Learn how long a step took.

        Args:
            n_running: rows that got a token in it.
            n_prompt_tokens: tokens of prompts that were read in it.
            seconds: its time.
        """
        if not n_running:
            return
        if not n_prompt_tokens:
            self._step_s = _smoothed(self._step_s, seconds)
        elif self._step_s is not None:
            budget = SMALLEST_BUDGET
            while budget < n_prompt_tokens:
                budget *= 2
            for larger in self._reading_s:
                if larger > budget:
                    # Or one slow moment would rule a budget out for ever.
                    self._reading_s[larger] *= _FADING
            extra_s = max(0.0, seconds - self._step_s) * budget / n_prompt_tokens
            self._reading_s[budget] = _smoothed(self._reading_s.get(budget), extra_s)

    def _is_bearable(self, budget: int, step_s: float) -> bool:
        known_s = self._reading_s.get(budget)
        if known_s is not None:
            return known_s <= READING_STEPS * step_s
        half_s = self._reading_s.get(budget // 2)
        return half_s is not None and 2 * half_s <= UNKNOWN_READING_STEPS * step_s


def _smoothed(before: float | None, now: float) -> float:
    return now if before is None else before + _SMOOTHING * (now - before)
