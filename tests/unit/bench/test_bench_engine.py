"""The measuring functions on a tiny model: what they count, never how long it takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bench.child_process import ChildCommand, ChildFailed, ChildProcess
from bench.decoding import batching, decode, prefill, sampling, step_times
from bench.footprint import memory
from bench.growth import growth_length, growth_waiting
from bench.interruption import longest_gap, pause
from bench.loads import SAMPLERS, prompt_maker, requests_of
from bench.model_choice import ModelChoice
from bench.our_engine import OurEngine
from bench.prefixes import TURNS, chat, reuse
from bench.setup import Setup
from bench.shaping import CHANGES, shaping, unused

TINY = Path(__file__).parents[2] / "data" / "tiny"
GPT2 = str(TINY / "gpt2")
CHOICE = ModelChoice(GPT2, None, "float32", "cpu")


@pytest.fixture(scope="module")
def setup() -> Setup:
    return Setup(
        choice=CHOICE,
        maker=prompt_maker(GPT2),
        rounds=1,
        batches=(1, 3),
        prompt_tokens=4,
        new_tokens=3,
        long_prompt=90,
        interruption=60,
        filled=(8, 16),
        waiting=(1, 9),
        settle_s=0,
    )


@pytest.mark.parametrize(
    ("family", "is_general"), [("gpt2", False), ("llama", False), ("llama", True)]
)
def test_engine_makes_every_token_and_reads_every_prompt_token(
    family: str, is_general: bool
) -> None:
    choice = ModelChoice(str(TINY / family), None, "float32", "cpu")
    engine = OurEngine(choice, slots=2, is_general=is_general)
    load = prompt_maker(choice.source).load(5, 7, 3, "count")
    n_before = engine.n_read_tokens

    run = engine.run(requests_of(load))

    # Each request's last token is never read, nor the BOS of LLaMA's that a row still holds.
    assert run.n_tokens == 15
    assert 5 * (6 + 2) < engine.n_read_tokens - n_before <= 5 * (7 + 2)
    assert engine.is_idle


def test_steps_are_timed_one_by_one_and_leave_the_engine_idle(setup: Setup) -> None:
    engine = setup.engine(3)

    times = step_times(engine, setup.maker, 3, 4, n=5)

    assert len(times) == 5
    assert engine.is_idle


def test_no_row_ends_before_all_are_read_and_their_steps_are_timed(setup: Setup) -> None:
    engine = OurEngine(CHOICE, slots=8, chunk=4)
    n_before = engine.n_read_tokens

    step_times(engine, setup.maker, 8, 20, n=5)

    # The first rows get some thirty tokens more while the prompts of the others are read.
    assert engine.n_read_tokens - n_before > 8 * (20 + 5 + 4)
    assert engine.is_idle


def test_decode_has_a_row_for_every_batch(setup: Setup) -> None:
    assert [row["batch"] for row in decode(setup).rows] == [1, 3]


def test_prefill_and_batching_compare_what_they_say(setup: Setup) -> None:
    assert len(prefill(setup).rows) == 1
    assert [row["what"] for row in batching(setup).rows] == ["one by one", "at once"]


def test_sampling_has_a_row_for_every_setting_and_greedy_is_the_base(setup: Setup) -> None:
    rows = sampling(setup).rows

    assert [row["what"] for row in rows] == list(SAMPLERS)
    assert rows[0]["of greedy median"] == 1.0


def test_shaping_has_a_row_for_every_change_and_greedy_is_the_base(setup: Setup) -> None:
    rows = shaping(setup).rows

    assert [row["what"] for row in rows] == list(CHANGES)
    assert rows[0]["of greedy median"] == 1.0


def test_unused_steps_are_timed_against_a_step_of_the_engine(setup: Setup) -> None:
    rows = unused(setup).rows

    assert [row["what"] for row in rows] == ["adjustments", "constraints"]
    for row in rows:
        share = float(row["us median"] or 0) / 1000 / float(row["step ms"] or 1)
        assert row["share of a step"] == pytest.approx(share)


def test_pause_sees_a_gap_while_a_prompt_is_read(setup: Setup) -> None:
    (row,) = pause(setup).rows

    assert row["longest gap, steps median"] is not None


def test_longest_gap_begins_with_the_last_token_before(setup: Setup) -> None:
    engine = setup.engine(1)
    (row,) = engine.start_rows(requests_of(setup.maker.load(1, 4, 9, "gap")))
    row.ear.times_s[:] = [0.0, 7.0, 8.0, 11.0, 12.0]

    assert longest_gap([row], [3]) == 3.0
    assert longest_gap([row], [1]) == 7.0


def test_second_prompt_never_reads_more_than_the_first(setup: Setup) -> None:
    first, second = reuse(setup).rows

    assert (first["tokens"], first["read"]) == (90, 90)
    assert second["tokens"] == 90
    assert 10 <= int(second["read"] or 0) <= 90


def test_chat_reads_no_more_than_each_prompt_and_prompts_grow(setup: Setup) -> None:
    rows = chat(setup).rows

    prompts = [int(row["prompt"] or 0) for row in rows]
    read = [int(row["read"] or 0) for row in rows]
    assert len(rows) == TURNS
    assert prompts == sorted(prompts)
    assert all(0 < n_read <= n for n_read, n in zip(read, prompts, strict=True))


def test_growth_has_a_row_for_every_size(setup: Setup) -> None:
    assert [row["tokens"] for row in growth_length(setup).rows] == [8, 16]
    assert [row["waiting"] for row in growth_waiting(setup).rows] == [1, 9]


def test_memory_is_more_than_the_weights(setup: Setup) -> None:
    (row,) = memory(setup, max_length=64).rows

    assert float(row["resident MiB"] or 0) > float(row["weights MiB"] or 0)


def test_child_runs_loads_until_it_is_stopped(setup: Setup) -> None:
    command = ChildCommand(sys.executable, "ours", [GPT2, "--precision", "float32"])
    load = requests_of(setup.maker.load(2, 4, 3, 1))

    with ChildProcess("ours", command) as child:
        counts = [child.run({"requests": load})[1] for _ in range(2)]

    assert set(child.ready["versions"]) == {"neodim", "torch", "transformers"}
    assert counts == [6, 6]


def test_child_that_dies_says_why() -> None:
    # It needs no torch, so it dies quickly: its library or its file is missing.
    command = ChildCommand(sys.executable, "llama", ["/nowhere.gguf", "--threads", "1"])

    with pytest.raises(ChildFailed, match=r"llama ended: [\s\S]*(llama_cpp|nowhere)"):
        ChildProcess("llama", command)
