"""What penalties, options and excluded texts cost: rows that ask for them, and rows that do not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median

import torch

from bench.decoding import SAMPLING_BATCH, step_times
from bench.loads import requests_of
from bench.our_engine import Change, OurEngine
from bench.report import Table
from bench.rounds import Measure, comparison
from bench.setup import Setup
from bench.spread import spread_of
from neodim_sampling.adjustments import adjust
from neodim_sampling.constraints import constrain
from neodim_sampling.parameters import ConstraintParams, WarperParams
from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints
from workers.contract.text_job import TextJob

CALLS = 200


def penalised(job: TextJob) -> TextJob:
    """With presence and frequency penalties on prompt and text."""
    wanted = AdjustmentParams(presence_penalty=0.5, frequency_penalty=0.1, counts_prompt=True)
    return replace(job, adjustments=wanted)


def penalised_by_factors(job: TextJob) -> TextJob:
    """With all three penalties, multiplicative, on prompt and text."""
    wanted = AdjustmentParams(
        presence_penalty=0.1,
        frequency_penalty=0.02,
        sequence_penalty=0.2,
        is_presence_multiplicative=True,
        is_frequency_multiplicative=True,
        is_sequence_multiplicative=True,
        counts_prompt=True,
    )
    return replace(job, adjustments=wanted)


def held_to_options(job: TextJob) -> TextJob:
    """Made of two words, one after the other until the text is long enough."""
    least = job.max_new_tokens or 0
    limits = ConstraintParams(inclusions=(" river", " old house"), min_new_tokens=least)
    return replace(job, constraints=limits)


def kept_from_words(job: TextJob) -> TextJob:
    """Without two frequent words."""
    return replace(job, constraints=ConstraintParams(exclusions=(" the", " and")))


def kept_from_a_letter(job: TextJob) -> TextJob:
    """Without a letter that every other token has."""
    return replace(job, constraints=ConstraintParams(exclusions=("e",)))


CHANGES: Mapping[str, Change | None] = {
    "greedy": None,
    "penalties": penalised,
    "penalties by factors": penalised_by_factors,
    "options": held_to_options,
    "excluded words": kept_from_words,
    "excluded letter": kept_from_a_letter,
}
"""What is done to greedy jobs, by name."""


def shaping(setup: Setup) -> Table:
    """Tokens per second of rows that all ask for something, as a share of greedy's."""
    engine = setup.engine(SAMPLING_BATCH)
    found = setup.alternate(
        {name: _speed(setup, engine, name, change) for name, change in CHANGES.items()}
    )
    engine.stop()
    note = f"{SAMPLING_BATCH} rows, {setup.lengths}"
    return Table("shaping", note, comparison(found, "greedy", "tokens/s"))


def unused(setup: Setup) -> Table:
    """Time that adjustments and constraints take for rows that ask for none, against a step's."""
    engine = setup.engine(SAMPLING_BATCH)
    step_s = median(step_times(engine, setup.maker, SAMPLING_BATCH, setup.prompt_tokens))
    n_vocab = engine.codec.n_vocab
    engine.stop()
    settings = RowSettings(
        warpers=WarperParams(top_k=1), constraints=TokenConstraints(), n_vocab=n_vocab
    )
    rows = [SamplingRow(settings, [1], 0, 0) for _ in range(SAMPLING_BATCH)]
    scores = torch.randn(SAMPLING_BATCH, n_vocab)
    table: list[dict[str, float | str]] = []
    calls: Mapping[str, Callable[[], object]] = {
        "adjustments": lambda: adjust(scores, rows),
        "constraints": lambda: constrain(scores, rows),
    }
    for name, call in calls.items():
        spent = spread_of([_seconds(call) for _ in range(CALLS)])
        row: dict[str, float | str] = {"what": name, "step ms": step_s * 1000}
        row |= {"us median": spent.median * 1e6, "share of a step": spent.median / step_s}
        table.append(row)
    return Table("unused", f"{SAMPLING_BATCH} rows without any", table)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _speed(setup: Setup, engine: OurEngine, name: str, change: Change | None) -> Measure:
    def tokens_per_s(number: int) -> float:
        # Prompts of their own for each: rows keep texts, and would not be read again.
        seed = ("shaping", name, number)
        load = setup.maker.load(SAMPLING_BATCH, setup.prompt_tokens, setup.new_tokens, seed)
        run = engine.run(requests_of(load), change)
        assert run.n_tokens == load.n_new_tokens, "nothing ends a text early"
        return run.tokens_per_s

    return tokens_per_s
