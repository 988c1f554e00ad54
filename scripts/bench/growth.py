"""How a step's time grows: with rows, with what they hold, with what waits."""

from __future__ import annotations

from bench.decoding import step_times
from bench.loads import requests_of
from bench.report import Row, Table
from bench.setup import Setup
from bench.spread import spread_of

ROWS = (1, 2, 4, 8, 16, 32, 64)
ROWS_PROMPT = 64
N_FIXED = 8
ADMITTED_ROWS = 4
STEPS = 12


def growth_rows(setup: Setup) -> Table:
    """A step's time by the number of rows."""
    engine = setup.engine(max(ROWS))
    rows: list[Row] = []
    for n_rows in ROWS:
        times = spread_of(step_times(engine, setup.maker, n_rows, ROWS_PROMPT))
        rows.append(_row({"rows": n_rows}, times.columns("step ms"), times.median / n_rows))
    engine.stop()
    return Table("growth-rows", f"rows that hold {ROWS_PROMPT} tokens and a few", rows)


def growth_length(setup: Setup) -> Table:
    """A step's time by the tokens that each of a fixed number of rows holds."""
    engine = setup.engine(N_FIXED, max_length=max(setup.filled) + STEPS + 8)
    rows: list[Row] = []
    for n_filled in setup.filled:
        load = setup.maker.load(1, n_filled, STEPS + 4, ("length", n_filled))
        # One request for all rows: its prompt is read once.
        (request,) = requests_of(load)
        running = engine.start_rows([{**request, "sequences_count": N_FIXED}])
        times = spread_of(engine.do(lambda: [engine.step() for _ in range(STEPS)]))
        engine.abandon(running)
        rows.append(_row({"tokens": n_filled}, times.columns("step ms"), times.median / N_FIXED))
    engine.stop()
    return Table("growth-length", f"{N_FIXED} rows", rows)


def growth_waiting(setup: Setup) -> Table:
    """A step's time while requests wait for a row, by their number."""
    engine = setup.engine(ADMITTED_ROWS)
    short = requests_of(setup.maker.load(1, setup.prompt_tokens, 1, "waiting"))[0]
    rows: list[Row] = []
    for n_waiting in setup.waiting:
        long = setup.maker.load(ADMITTED_ROWS, setup.prompt_tokens, 4 * STEPS, n_waiting)
        running = engine.start_rows(requests_of(long))
        waiting = [engine.submit(short) for _ in range(n_waiting)]
        # The first one takes them over from the threads that brought them.
        taken_over_s = engine.step()
        times = spread_of(engine.do(lambda: [engine.step() for _ in range(STEPS)]))
        engine.abandon([*running, *waiting])
        start = _row({"waiting": n_waiting}, times.columns("step ms"), None)
        rows.append({**start, "taking over ms": taken_over_s * 1000})
    engine.stop()
    return Table("growth-waiting", f"{ADMITTED_ROWS} rows run and none is free", rows)


def _row(start: Row, seconds: dict[str, float], per_row_s: float | None) -> Row:
    row: dict[str, float | int | str | None] = {
        **start,
        **{name: value * 1000 for name, value in seconds.items()},
    }
    if per_row_s is not None:
        row["ms per row"] = per_row_s * 1000
    return row
