"""Prompts are read as fast as running rows can bear."""

from __future__ import annotations

import pytest

from workers.engine.pace import PLAIN_AFTER, READING_STEPS, SMALLEST_BUDGET, Pace


def learned(pace: Pace, step_s: float, token_s: float, fixed_s: float) -> list[int]:
    """Budgets of steps that cost what is said, beside eight rows."""
    budgets = []
    pace.observe(8, 0, step_s)
    for _ in range(40):
        budgets.append(pace.prompt_budget(8))
        pace.observe(8, budgets[-1], step_s + fixed_s + token_s * budgets[-1])
    return budgets


def test_everything_is_read_when_nobody_waits_for_a_step() -> None:
    assert Pace(512).prompt_budget(0) == 512


@pytest.mark.parametrize(
    ("token_s", "fixed_s", "expected"),
    [(0.001, 0.0, 96), (0.002, 0.05, 24), (0.01, 0.0, 16), (0.00001, 0.0, 512)],
)
def test_budget_becomes_the_largest_that_keeps_the_limit(
    token_s: float, fixed_s: float, expected: int
) -> None:
    budgets = learned(Pace(512), 0.1, token_s, fixed_s)

    assert budgets[-1] == expected
    is_smallest = expected == SMALLEST_BUDGET
    assert is_smallest or token_s * expected + fixed_s <= READING_STEPS * 0.1


def test_budget_is_not_overshot_on_the_way() -> None:
    budgets = learned(Pace(4096), 0.1, 0.001, 0.0)

    assert max(budgets) * 0.001 <= READING_STEPS * 0.1


def test_prompts_wait_for_one_step_without_them_before_any_are_read_beside_rows() -> None:
    pace = Pace(64)
    pace.observe(0, 64, 9.0)

    assert pace.prompt_budget(3) == 0
    pace.observe(3, 0, 0.1)

    assert pace.prompt_budget(3) == SMALLEST_BUDGET


def test_time_of_a_step_is_learned_again_where_there_are_always_prompts() -> None:
    pace = Pace(512)
    learned(pace, 1.0, 0.001, 0.0)

    # The rows are fewer now, and a step takes a tenth of the time.
    for _ in range(30 * PLAIN_AFTER):
        budget = pace.prompt_budget(1)
        pace.observe(1, budget, 0.1 + 0.001 * budget)

    assert pace.prompt_budget(1) * 0.001 <= READING_STEPS * 0.1


def test_budget_below_the_smallest_is_kept() -> None:
    pace = Pace(4)
    pace.observe(8, 0, 0.1)

    assert pace.prompt_budget(8) == 4
    assert pace.prompt_budget(0) == 4


def test_budget_ruled_out_by_one_slow_moment_is_tried_again() -> None:
    pace = Pace(64)
    learned(pace, 0.1, 0.0005, 0.0)
    pace.observe(8, 64, 30.0)
    assert pace.prompt_budget(8) < 64

    later = [budget for _ in range(8) for budget in learned(pace, 0.1, 0.0005, 0.0)]

    assert later[-1] == 64
