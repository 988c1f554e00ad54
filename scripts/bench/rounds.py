"""Measures that are to be compared, taken in turn: A B A B ..., so that a drift hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from bench.spread import ratios, spread_of

WARM_UP = -1
"""Number of the round that is thrown away."""

SETTLE_S = 0.3
"""Idle time between two measures: threads of OpenMP spin for 0.2 s behind their last work."""

Measure = Callable[[int], float]
"""One measurement; takes the number of the round, so that no two rounds read the same prompt."""


def alternate(
    measures: Mapping[str, Measure], n_rounds: int, settle_s: float = SETTLE_S
) -> dict[str, list[float]]:
    """What each measure gave in each round; a round before the first warms all of them up.

    Args:
        measures: by name, in the order in which they take turns.
        n_rounds: rounds that count, at least one.
        settle_s: pause before each measurement, seconds.
    """
    found: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(WARM_UP, n_rounds):
        for name, measure in measures.items():
            time.sleep(settle_s)
            value = measure(number)
            if number != WARM_UP:
                found[name].append(value)
    return found


def comparison(
    found: Mapping[str, Sequence[float]], base: str, unit: str
) -> list[dict[str, float | str]]:
    """Rows of a table: each measure's spread, and that of its ratio to the base's.

    Args:
        found: what `alternate` gave.
        base: name of the measure whose ratio is 1.
        unit: of the values, for the columns' names.
    """
    return [
        {
            "what": name,
            **spread_of(values).columns(unit),
            **spread_of(ratios(values, found[base])).columns(f"of {base}"),
        }
        for name, values in found.items()
    ]
