"""Where time goes, by function: Python's own profiler, with builtins counted for their callers."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

BUILTIN = "~"
"""File name of functions that are not written in Python."""

HANDED_ON = "torch/_ops.py"
"""The file through which calls of `torch.ops` go."""

MOST_HOPS = 4

Place = tuple[str, int, str]
"""File, line and name of a function."""

Stats = Mapping[Place, tuple[Any, ...]]


def profile_calls(work: Callable[[], object]) -> dict[Place, float]:
    """Seconds that each Python function takes itself while `work` runs, as `own_seconds` has it."""
    profiler = cProfile.Profile()
    profiler.enable()
    work()
    profiler.disable()
    # The attribute is there in every Python, and missing in the stubs.
    return own_seconds(pstats.Stats(profiler).stats)  # type: ignore[attr-defined]


def own_seconds(stats: Stats) -> dict[Place, float]:
    """Seconds by Python function, without those it calls, but with the builtins that it calls.

    A tensor operation is a builtin, so its time belongs to the line of the model that asks for it.

    Args:
        stats: as `pstats.Stats.stats`: calls, primitive calls, own seconds, seconds with callees,
            and the callers, each with the same four numbers.
    """
    found: dict[Place, float] = {}
    for place, (_, _, own_s, _, _) in stats.items():
        for owner, part_s in _owners(stats, place, own_s, MOST_HOPS):
            found[owner] = found.get(owner, 0.0) + part_s
    return found


def _owners(
    stats: Stats, place: Place, seconds: float, n_hops: int
) -> Iterator[tuple[Place, float]]:
    """Whose these seconds of a function are: its own, or its callers' in proportion."""
    callers = stats[place][4] if place in stats else {}
    is_builtin = place[0] == BUILTIN
    is_own = not (is_builtin or place[0].endswith(HANDED_ON))
    # Own seconds for builtins, and seconds with callees for what only hands on to one.
    weights = {caller: numbers[2 if is_builtin else 3] for caller, numbers in callers.items()}
    total = sum(weights.values())
    if is_own or total == 0 or n_hops == 0:
        yield place, seconds
        return
    for caller, weight in weights.items():
        yield from _owners(stats, caller, seconds * weight / total, n_hops - 1)


def by_file(seconds: Mapping[Place, float]) -> dict[str, float]:
    """The same by file, the costliest first."""
    found: dict[str, float] = {}
    for (file, _, _), part_s in seconds.items():
        name = short_name(file)
        found[name] = found.get(name, 0.0) + part_s
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def short_name(file: str) -> str:
    """A file's path from its package on."""
    parts = Path(file).parts
    for start in ("site-packages", "workers", "neodim_sampling", "transformers", "torch"):
        if start in parts:
            place = len(parts) - 1 - parts[::-1].index(start)
            return str(Path(*parts[place + (start == "site-packages") :]))
    return parts[-1] if parts else file
