"""How fast the engine generates: by batch, against itself on the general path, by sampling."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench.loads import SAMPLERS, Fields, PromptMaker, requests_of
from bench.machine import copy_bandwidth
from bench.our_engine import OurEngine
from bench.report import Row, Table
from bench.rounds import Measure, comparison
from bench.setup import Setup
from bench.spread import spread_of

SAMPLING_BATCH = 32
CLIENTS = 8
TIMED_STEPS = 16


def decode(setup: Setup) -> Table:
    """Greedy tokens per second, by batch size."""
    engine = setup.engine(max(setup.batches))
    rows: list[Row] = []
    for batch in setup.batches:
        found = setup.alternate({"ours": _speed(setup, engine, batch)})
        rows.append({"batch": batch, **spread_of(found["ours"]).columns("tokens/s")})
    engine.stop()
    return Table("decode", f"greedy, {setup.lengths}", rows)


def prefill(setup: Setup) -> Table:
    """Prompt tokens per second of a long prompt."""
    engine = setup.engine(1)

    def speed(number: int) -> float:
        load = setup.maker.load(1, setup.long_prompt, 1, ("prefill", number))
        return setup.long_prompt / engine.run(requests_of(load)).seconds

    found = setup.alternate({"ours": speed})["ours"]
    engine.stop()
    note = f"one prompt of {setup.long_prompt} tokens, to its first generated token"
    return Table("prefill", note, [spread_of(found).columns("tokens/s")])


def paths(setup: Setup) -> Table:
    """The engine's own path for the model's family against the general one."""
    most = max(setup.batches)
    engines = {"ours": setup.engine(most), "general": setup.engine(most, is_general=True)}
    rows: list[Row] = []
    for batch in setup.batches:
        found = setup.alternate(
            {name: _speed(setup, engine, batch) for name, engine in engines.items()}
        )
        rows += [{"batch": batch, **row} for row in comparison(found, "general", "tokens/s")]
    for engine in engines.values():
        engine.stop()
    return Table("paths", f"greedy, {setup.lengths}; general: what all families share", rows)


def batching(setup: Setup) -> Table:
    """Eight clients one after the other against all at once."""
    engine = setup.engine(CLIENTS)

    def alone(number: int) -> float:
        load = setup.maker.load(CLIENTS, setup.prompt_tokens, setup.new_tokens, ("alone", number))
        seconds = sum(engine.run([request]).seconds for request in requests_of(load))
        return load.n_new_tokens / seconds

    found = setup.alternate({"one by one": alone, "at once": _speed(setup, engine, CLIENTS)})
    engine.stop()
    rows = comparison(found, "one by one", "tokens/s")
    return Table("batching", f"{CLIENTS} clients, greedy, {setup.lengths}", rows)


def sampling(setup: Setup) -> Table:
    """Tokens per second with sampling, as a share of greedy's."""
    engine = setup.engine(SAMPLING_BATCH)
    found = setup.alternate(
        {name: _speed(setup, engine, SAMPLING_BATCH, fields) for name, fields in SAMPLERS.items()}
    )
    engine.stop()
    rows = comparison(found, "greedy", "tokens/s")
    return Table("sampling", f"{SAMPLING_BATCH} rows, {setup.lengths}", rows)


def bandwidth(setup: Setup) -> Table:
    """Time that reading the weights once takes at the speed of a copy, as a share of a step."""
    copied = spread_of([copy_bandwidth(setup.choice.device) for _ in range(max(3, setup.rounds))])
    engine = setup.engine(max(setup.batches))
    n_bytes = engine.weights_bytes
    rows = []
    for batch in setup.batches:
        step_s = median(step_times(engine, setup.maker, batch, setup.prompt_tokens))
        rows.append(
            {
                "batch": batch,
                "step ms": step_s * 1000,
                "weights MB": n_bytes / 1e6,
                "copy GB/s": copied.high / 1e9,
                "share of the limit": n_bytes / copied.high / step_s,
            }
        )
    engine.stop()
    return Table("bandwidth", "weights read once per step; a copy reads and writes", rows)


def step_times(
    engine: OurEngine, maker: PromptMaker, n_rows: int, prompt_tokens: int, n: int = TIMED_STEPS
) -> list[float]:
    """Seconds of steps in which so many rows get a token and nothing else happens."""
    # As many tokens as have room: no row may end while the prompts of others are still read.
    n_new = engine.max_length - 2 * prompt_tokens
    load = maker.load(n_rows, prompt_tokens, n_new, ("steps", n_rows, prompt_tokens))
    rows = engine.start_rows(requests_of(load))
    times = engine.do(lambda: [engine.step() for _ in range(n)])
    assert not any(each.ear.is_ended for each in rows), "every row got a token in every step"
    engine.abandon(rows)
    return times


def _speed(
    setup: Setup, engine: OurEngine, batch: int, fields: Sequence[Fields] = SAMPLERS["greedy"]
) -> Measure:
    """A measurement of tokens per second."""

    def tokens_per_s(number: int) -> float:
        # Prompts of its own for each setting: rows keep texts, and would not be read again.
        seed = (batch, number, fields)
        load = setup.maker.load(batch, setup.prompt_tokens, setup.new_tokens, seed)
        run = engine.run(requests_of(load, fields))
        assert run.n_tokens == load.n_new_tokens, "nothing ends a text early"
        return run.tokens_per_s

    return tokens_per_s
