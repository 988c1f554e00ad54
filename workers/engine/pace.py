"""How many prompt tokens a step may read without keeping running rows waiting."""

from __future__ import annotations

SMALLEST_BUDGET = 16
"""Prompt tokens that a step reads at least."""

READING_STEPS = 1.25
"""Time that prompts may add to a step, in ordinary steps."""

FORGOTTEN_AFTER = 50
"""Steps with smaller budgets after which the time of a larger one is a guess again."""

PLAIN_AFTER = 50
"""Steps after which prompts, where there are always some, wait for one step without them: what an
ordinary step takes changes with the rows."""

_SMOOTHING = 0.3


class Pace:
    """Learns from the steps what prompts cost.

    Each budget is up to one and a half times the one before. The time of one that was not used
    lately is guessed from the one before, in proportion, which is rather too much: a part of a
    step's time is the same for any number of tokens.

    Args:
        largest_budget: prompt tokens of a step when nothing else runs, or when they cost little.
    """

    def __init__(self, largest_budget: int) -> None:
        self._largest = max(1, largest_budget)
        self._budgets = _budgets(self._largest)
        self._step_s: float | None = None
        self._reading_s: dict[int, float] = {}
        self._ages: dict[int, int] = {}
        self._n_mixed = 0
        """Steps since the last one that read no prompts beside its rows."""

    def prompt_budget(self, n_running: int) -> int:
        """Most prompt tokens of the next step; 0 = first see how long one without any takes.

        Args:
            n_running: rows that get a token in it.
        """
        if not n_running:
            return self._largest
        if self._step_s is None or self._n_mixed >= PLAIN_AFTER:
            return 0
        limit_s = READING_STEPS * self._step_s
        chosen, *larger = self._budgets
        expected_s = self._reading_s.get(chosen)
        for budget in larger:
            if expected_s is None:
                break
            expected_s = self._reading_s.get(budget, expected_s * budget / chosen)
            if expected_s > limit_s:
                break
            chosen = budget
        return chosen

    def observe(self, n_running: int, n_prompt_tokens: int, seconds: float) -> None:
        """Learn how long a step took.

        Args:
            n_running: rows that got a token in it.
            n_prompt_tokens: tokens of prompts that were read in it.
            seconds: its time.
        """
        if not n_running:
            return
        self._n_mixed += 1
        if not n_prompt_tokens:
            self._n_mixed = 0
            self._step_s = _smoothed(self._step_s, seconds)
        elif self._step_s is not None:
            budget = next(
                (each for each in self._budgets if each >= n_prompt_tokens), self._largest
            )
            extra_s = max(0.0, seconds - self._step_s) * budget / n_prompt_tokens
            self._reading_s[budget] = _smoothed(self._reading_s.get(budget), extra_s)
            self._forget_larger(budget)

    def _forget_larger(self, budget: int) -> None:
        """Let times that were not seen for long go: one slow moment rules nothing out for ever."""
        self._ages[budget] = 0
        for larger in [each for each in self._reading_s if each > budget]:
            self._ages[larger] += 1
            if self._ages[larger] > FORGOTTEN_AFTER:
                del self._reading_s[larger]


def _budgets(largest: int) -> list[int]:
    """16, 24, 32, 48, 64 and so on up to the largest."""
    budgets: list[int] = []
    power = SMALLEST_BUDGET
    while power < largest:
        budgets += [power, power * 3 // 2]
        power *= 2
    return [*(each for each in budgets if each < largest), largest]


def _smoothed(before: float | None, now: float) -> float:
    return now if before is None else before + _SMOOTHING * (now - before)
