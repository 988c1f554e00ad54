from __future__ import annotations

import pytest
from bench.rounds import WARM_UP, alternate, comparison
from bench.spread import percentile, ratios, spread_of


def test_spread_has_lowest_middle_and_highest_of_unordered_values() -> None:
    found = spread_of([3.0, 1.0, 2.0, 10.0])

    assert (found.low, found.median, found.high) == (1.0, 2.5, 10.0)
    assert found.columns("ms") == {"ms min": 1.0, "ms median": 2.5, "ms max": 10.0}


def test_spread_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        spread_of([])


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1.0), (50, 3.0), (75, 4.0), (99, 4.96), (100, 5.0)]
)
def test_percentile_lies_between_neighbours_in_proportion(percent: float, expected: float) -> None:
    assert percentile([5.0, 1.0, 4.0, 2.0, 3.0], percent) == pytest.approx(expected)


@pytest.mark.parametrize(("values", "percent"), [([], 50), ([1.0], 101), ([1.0], -1)])
def test_percentile_that_does_not_exist_is_refused(values: list[float], percent: float) -> None:
    with pytest.raises(ValueError, match="no percentile"):
        percentile(values, percent)


def test_ratios_are_taken_round_by_round_and_only_of_the_same_rounds() -> None:
    assert ratios([2.0, 9.0], [1.0, 3.0]) == [2.0, 3.0]
    with pytest.raises(ValueError, match="zip"):
        ratios([1.0], [1.0, 2.0])


def test_measures_take_turns_and_the_first_round_does_not_count() -> None:
    calls: list[tuple[str, int]] = []

    def measure(name: str, number: int) -> float:
        calls.append((name, number))
        return float(number)

    found = alternate(
        {"a": lambda n: measure("a", n), "b": lambda n: measure("b", n)}, 2, settle_s=0
    )

    assert calls == [(name, n) for n in (WARM_UP, 0, 1) for name in ("a", "b")]
    assert found == {"a": [0.0, 1.0], "b": [0.0, 1.0]}


def test_comparison_gives_the_base_a_ratio_of_one() -> None:
    rows = comparison({"greedy": [10.0, 20.0], "top_p": [5.0, 20.0]}, "greedy", "tokens/s")

    assert [row["what"] for row in rows] == ["greedy", "top_p"]
    assert [row["of greedy median"] for row in rows] == [1.0, 0.75]
    assert rows[1]["of greedy min"] == 0.5
    assert rows[1]["tokens/s max"] == 20.0
