"""How long rows that run wait for their next token while a long prompt is read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from bench.hearing import Request
from bench.loads import requests_of
from bench.our_engine import OurEngine
from bench.report import Table
from bench.setup import Setup
from bench.spread import spread_of

N_ROWS = 8
STEPS_BEFORE = 16
STEPS_AFTER = 8


def pause(setup: Setup) -> Table:
    """The longest gap between tokens of running rows, in ordinary steps."""
    engine = setup.engine(N_ROWS + 1)
    found = [_gap(setup, engine, number) for number in range(-1, setup.rounds)][1:]
    engine.stop()
    row = {
        **spread_of([gap for gap, _ in found]).columns("longest gap, steps"),
        "ordinary step ms": median(step for _, step in found) * 1000,
    }
    note = f"{N_ROWS} rows run, a prompt of {setup.interruption} tokens arrives"
    return Table("pause", note, [row])


def _gap(setup: Setup, engine: OurEngine, number: int) -> tuple[float, float]:
    """The longest gap in units of the median step before it, and that step's seconds."""
    few = setup.prompt_tokens
    load = setup.maker.load(N_ROWS, few, engine.max_length - few, ("running", number))
    rows = engine.start_rows(requests_of(load))
    step_s = median(engine.step() for _ in range(STEPS_BEFORE))
    n_before = [each.n_tokens for each in rows]
    long = setup.maker.load(1, setup.interruption, STEPS_AFTER, ("arriving", number))
    (arrived,) = (engine.submit(each) for each in requests_of(long))
    engine.finish([arrived])
    gap_s = longest_gap(rows, n_before)
    engine.abandon([*rows, arrived])
    return gap_s / step_s, step_s


def longest_gap(rows: Sequence[Request], n_before: Sequence[int]) -> float:
    """Seconds of the longest wait of any row for a token, from its last one before on.

    Args:
        rows: requests of one sequence each.
        n_before: tokens that each had before what is looked at.
    """
    gaps = []
    for row, n in zip(rows, n_before, strict=True):
        times = row.ear.times_s[n - 1 :]
        gaps += [after - before for before, after in pairwise(times)]
    return max(gaps)
