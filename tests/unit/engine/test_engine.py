"""The engine on tiny real models: recorded answers, neighbours, cancel, resume, faults."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from tiny_engine import FAMILIES, Ear, TinyEngine, answer, cases, job, running

from neodim_sampling.errors import InvalidParams, NoTokenLeft, PromptTooLong, StopPatternTimeout
from workers.contract.errors import EngineFailure, EngineStopped, OutOfMemory
from workers.contract.text_result import FinishReason
from workers.engine.questions import Question, TextToRead
from workers.engine.sequence import Sequence
from workers.engine.text_model import Run

pytestmark = pytest.mark.model

AGAINST_THE_SPECIFICATION = {
    # LLaMA keeps its start token, within the limit, however its prompt is cut.
    ("llama", "truncate"),
    # A prompt that was cut through a string still fits in max_total_tokens.
    ("llama", "truncate with preamble"),
}
"""Recorded answers of the original server that this one decides otherwise on purpose."""

N_STEPS_FOR_PROMPTS = 4
"""Steps in which two of the usual prompts are read, a chunk each."""

SAMPLED = {"temperature": 0.9, "top_p": 0.95, "repetition_penalty": 1.2}
VARIED: list[dict[str, Any]] = [
    {"top_k": 1},
    SAMPLED,
    {"temperature": 1.3, "tfs": 0.9, "seed": 3},
    {"typical": 0.5, "top_a": 0.2, "warpers_order": ["top_a", "*"]},
    {"top_k": 4, "penalty_alpha": 0.6},
    {"sequences_count": 3, "temperature": 0.8},
    {"stop_strings": ["[a-z]{3}"], "stop_strings_type": "regex", "temperature": 1.1},
    {"no_repeat_ngram_size": 1, "can_stop_early": True, "temperature": 1.5},
    {"words_blacklist": ["the", "cat"], "top_k": 1, "preamble": "Story: "},
    {"prompt": "x", "generated_tokens_count": 30, "temperature": 1.0},
]


@pytest.fixture
def engine() -> Iterator[TinyEngine]:
    with running() as engine:
        yield engine


@pytest.fixture
def still_engine() -> TinyEngine:
    """An engine that only moves when a test steps it."""
    return TinyEngine(is_running=False)


def steps(engine: TinyEngine, count: int) -> None:
    for _ in range(count):
        engine.engine.step()


def n_free_slots(engine: TinyEngine) -> int:
    return engine.engine._slots.n_free


@pytest.mark.parametrize("family", FAMILIES)
def test_family_gives_the_recorded_answers_beside_each_other(family: str) -> None:
    expected = {each["name"]: each for each in cases(family)}

    with running(family) as engine, ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda each: engine.generate(**each["request"]), expected.values())
        found = {name: answer(each) for name, each in zip(expected, results, strict=True)}

    for name, case in expected.items():
        if (family, name) not in AGAINST_THE_SPECIFICATION:
            assert {key: found[name][key] for key in case["expect"]} == case["expect"], name


@pytest.mark.parametrize("name", ["truncate", "truncate with preamble"])
def test_llama_prompt_fits_and_keeps_its_start_token_when_cut(name: str) -> None:
    request = next(each["request"] for each in cases("llama") if each["name"] == name)

    with running("llama") as engine:
        generation, ear = engine.submit(job(**request))
        result = answer(engine.result(generation, ear))

    assert generation.fitted.input_ids[0] == 1
    assert result["output_tokens_count"] <= request["max_total_tokens"]


def test_same_seed_gives_the_same_text_alone_and_among_strangers(engine: TinyEngine) -> None:
    alone = [answer(engine.generate(**fields)) for fields in VARIED]

    with ThreadPoolExecutor(len(VARIED)) as pool:
        together = list(pool.map(lambda fields: answer(engine.generate(**fields)), VARIED))

    assert together == alone


def test_different_seeds_give_different_texts(engine: TinyEngine) -> None:
    texts = {engine.generate(temperature=1.0, seed=seed).sequences[0].text for seed in range(8)}

    assert len(texts) == 8


def test_sequences_of_one_job_differ_and_count_alike(engine: TinyEngine) -> None:
    result = engine.generate(sequences_count=4, temperature=1.0)

    assert len({sequence.text for sequence in result.sequences}) == 4
    assert {len(sequence.tokens) for sequence in result.sequences} == {result.n_generated}


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_prompt_read_in_chunks_gives_the_same_text(engine: TinyEngine, chunk: int) -> None:
    whole = engine.generate(top_k=1)

    with running(chunk=chunk) as other:
        chunked = other.generate(top_k=1)

    assert chunked == whole


@pytest.mark.parametrize("family", FAMILIES)
def test_prompts_read_together_give_what_each_gives_alone(family: str) -> None:
    prompts = ["x", "A red house", "The old cat sees a red house near the river. " * 5, "One\n two"]
    with running(family) as engine:
        alone = [answer(engine.generate(prompt=each, top_k=1)) for each in prompts]

    still = TinyEngine(family, chunk=1000, is_running=False)
    submitted = [still.submit(job(prompt=each, top_k=1)) for each in prompts]
    steps(still, 1)
    n_begun = sum(len(ear.tokens.get(0, ())) for _, ear in submitted)
    while not all(ear.ended.is_set() for _, ear in submitted):
        steps(still, 1)

    assert n_begun == len(prompts)
    assert [answer(still.result(*each)) for each in submitted] == alone


def test_warmed_up_model_has_its_whole_cache_and_gives_the_same_text(engine: TinyEngine) -> None:
    expected = answer(engine.generate(top_k=1))

    with running() as warm:
        warm.model.warm_up()
        found = answer(warm.generate(top_k=1))

    # 8 rows and a spare one of 250 tokens in 2 layers, keys and values of 32 numbers of 4 bytes.
    assert warm.model.cache.n_bytes == 9 * 250 * 2 * 2 * 32 * 4
    assert found == expected


def test_prompt_is_not_padded_past_the_end_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "The old cat sees a red house near the river. "
    prompts = [sentence * 20, sentence * 8]
    fields = {"generated_tokens_count": 2, "max_total_tokens": 1000, "top_k": 1}
    with running() as engine:
        alone = [answer(engine.generate(prompt=each, **fields)) for each in prompts]
    lengths = [each["used_input_tokens_count"] for each in alone]

    still = TinyEngine(chunk=200, is_running=False)
    ends: list[int] = []

    def read(runs: list[Run]) -> Any:
        longest = max(len(run.tokens) for run in runs)
        padded = [run for run in runs if len(run.tokens) > 1]
        ends.extend(run.start + longest for run in padded)
        return healthy(runs)

    healthy = still.model.read
    monkeypatch.setattr(still.model, "read", read)
    submitted = [still.submit(job(prompt=each, **fields)) for each in prompts]
    while not all(ear.ended.is_set() for _, ear in submitted):
        steps(still, 1)

    # What is left of the first after a chunk, padded to the second, would be too long.
    assert 200 < lengths[0] < 250 < 200 + lengths[1]
    assert max(ends) <= still.model.max_length
    assert [answer(still.result(*each)) for each in submitted] == alone


@pytest.mark.parametrize("n_made", [0, 1, 5, 11, 12])
@pytest.mark.parametrize("fields", VARIED[:9], ids=str)
def test_resumed_job_ends_with_the_same_text(
    engine: TinyEngine, fields: dict[str, Any], n_made: int
) -> None:
    whole = engine.generate(**fields)
    made = {index: each.tokens[:n_made] for index, each in enumerate(whole.sequences)}

    generation, ear = engine.submit(job(**fields), made)
    resumed = engine.result(generation, ear)

    assert resumed == whole
    assert all(
        ear.tokens.get(index, []) == list(each.tokens[n_made:])
        for index, each in enumerate(whole.sequences)
    )


def test_stream_adds_up_to_the_text_before_the_stop(engine: TinyEngine) -> None:
    plain = engine.generate(temperature=1.0, generated_tokens_count=40).sequences[0].text
    stop = plain[20:23]

    generation, ear = engine.submit(
        job(temperature=1.0, generated_tokens_count=40, stop_strings=[stop])
    )
    result = engine.result(generation, ear).sequences[0]

    assert (result.stop_string, result.stop_match) == (stop, stop)
    assert result.text == plain[: plain.index(stop)]
    assert ear.texts.get(0, "") == result.text


def test_cancelled_job_keeps_its_text_and_frees_its_slot(still_engine: TinyEngine) -> None:
    generation, ear = still_engine.submit(job(generated_tokens_count=50, temperature=1.0))
    steps(still_engine, 6)

    generation.cancel()
    steps(still_engine, 1)

    result = still_engine.result(generation, ear)
    assert result.is_partial
    assert 0 < result.n_generated < 50
    assert result.sequences[0].finish_reason is FinishReason.CANCELLED
    assert n_free_slots(still_engine) == still_engine.model.slots


def test_waiting_job_can_be_cancelled(still_engine: TinyEngine) -> None:
    for _ in range(2):
        still_engine.submit(job(sequences_count=8, generated_tokens_count=50))
    waiting, ear = still_engine.submit(job())
    steps(still_engine, 3)

    waiting.cancel()
    steps(still_engine, 1)

    assert still_engine.result(waiting, ear).n_generated == 0


def test_jobs_start_in_order_of_arrival_however_many_slots_they_need(
    still_engine: TinyEngine,
) -> None:
    ears = [
        still_engine.submit(job(sequences_count=count, generated_tokens_count=3))[1]
        for count in (6, 8, 1, 1)
    ]

    order: list[int] = []
    while len(order) < len(ears):
        steps(still_engine, 1)
        order += [n for n, ear in enumerate(ears) if ear.ended.is_set() and n not in order]

    assert order == [0, 1, 2, 3]
    assert n_free_slots(still_engine) == still_engine.model.slots


def test_job_that_wants_no_token_reports_its_input(engine: TinyEngine) -> None:
    result = engine.generate(generated_tokens_count=0)

    assert result.n_generated == 0
    assert result.sequences[0].output_text == "The old cat sees a red house near the river."
    assert result.sequences[0].text == ""


def test_job_that_cannot_fit_is_refused_with_the_numbers(engine: TinyEngine) -> None:
    with pytest.raises(PromptTooLong, match=r"max_total_tokens: \d+ input tokens and 240"):
        engine.generate(generated_tokens_count=240, max_total_tokens=1000)


def test_more_sequences_than_slots_are_refused(engine: TinyEngine) -> None:
    with pytest.raises(InvalidParams, match="sequences_count: must be at most 8"):
        engine.generate(sequences_count=9)


def test_constraints_that_leave_no_token_fail_their_own_job(engine: TinyEngine) -> None:
    neighbour = engine.submit(job(temperature=1.0))

    with pytest.raises(NoTokenLeft):
        engine.generate(words_whitelist=["x"], no_repeat_ngram_size=1)

    assert engine.result(*neighbour).n_generated == 12


def test_pattern_that_takes_too_long_fails_its_own_job_and_holds_up_nobody(
    still_engine: TinyEngine,
) -> None:
    fields = {"temperature": 1.0, "generated_tokens_count": 60}
    slow = still_engine.submit(
        job(**fields, stop_strings=[r"(?s)(?:.|.)*[\x00-\x01]{3}"], stop_strings_type="regex")
    )
    neighbour = still_engine.submit(job(**fields))
    n_steps = 0
    while not neighbour[1].ended.is_set():
        steps(still_engine, 1)
        n_steps += 1
    while not slow[1].ended.is_set():
        steps(still_engine, 1)

    assert n_steps <= N_STEPS_FOR_PROMPTS + 60
    assert still_engine.result(*neighbour).n_generated == 60
    with pytest.raises(StopPatternTimeout, match="takes too long"):
        still_engine.result(*slow)


def test_failing_row_fails_alone(engine: TinyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = engine.model.read

    def read(runs: list[Run]) -> Any:
        if any(len(run.tokens) == 1 and run.start > 60 for run in runs):
            raise ZeroDivisionError
        return healthy(runs)

    monkeypatch.setattr(engine.model, "read", read)
    long_prompt = "The old cat sees a red house near the river. " * 5
    bad = engine.submit(job(prompt=long_prompt, max_total_tokens=200))
    good = [engine.submit(job(seed=seed, temperature=1.0)) for seed in range(4)]

    with pytest.raises(EngineFailure):
        engine.result(*bad)

    assert [engine.result(*each).n_generated for each in good] == [12] * 4


@pytest.mark.parametrize("method", ["accept", "take_delta"])
def test_text_that_cannot_be_spelt_fails_alone(
    engine: TinyEngine, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    healthy = getattr(Sequence, method)

    def broken(self: Sequence, *args: Any, **options: Any) -> Any:
        if self.row.seed == 99 and len(self.row.generated) >= 5:
            raise ZeroDivisionError
        return healthy(self, *args, **options)

    monkeypatch.setattr(Sequence, method, broken)
    bad = engine.submit(job(seed=99))
    good = engine.submit(job(generated_tokens_count=30))

    with pytest.raises(EngineFailure):
        engine.result(*bad)

    assert engine.result(*good).n_generated == 30
    assert engine.generate().n_generated == 12


def test_batch_too_large_for_the_memory_shrinks(
    engine: TinyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [answer(engine.generate(seed=seed, temperature=1.0)) for seed in range(6)]
    healthy = engine.model.read

    def read(runs: list[Run]) -> Any:
        if len(runs) > 2:
            raise torch.OutOfMemoryError
        return healthy(runs)

    monkeypatch.setattr(engine.model, "read", read)
    submitted = [engine.submit(job(seed=seed, temperature=1.0)) for seed in range(6)]

    assert [answer(engine.result(*each)) for each in submitted] == expected


def test_prompt_too_large_for_the_memory_fails_alone(
    engine: TinyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = engine.model.read

    def read(runs: list[Run]) -> Any:
        if any(len(run.tokens) > 1 and run.start >= 48 for run in runs):
            raise torch.OutOfMemoryError
        return healthy(runs)

    monkeypatch.setattr(engine.model, "read", read)
    bad = engine.submit(job(prompt="A red house. " * 20, max_total_tokens=200))
    good = engine.submit(job())

    with pytest.raises(OutOfMemory):
        engine.result(*bad)

    assert engine.result(*good).n_generated == 12


@pytest.mark.parametrize("n_sequences", [1, 3])
def test_copy_of_a_row_that_fails_ends_only_its_own_job(
    still_engine: TinyEngine, monkeypatch: pytest.MonkeyPatch, n_sequences: int
) -> None:
    fields = {"prompt": "The old cat sees a red house near the river. " * 2, "top_k": 1}
    good = still_engine.submit(job(**fields))
    steps(still_engine, 6)

    def copy_row(source: int, target: int, length: int) -> None:
        raise MemoryError

    monkeypatch.setattr(still_engine.model.cache, "copy_row", copy_row)
    bad = still_engine.submit(job(**fields, sequences_count=n_sequences))
    while not (good[1].ended.is_set() and bad[1].ended.is_set()):
        steps(still_engine, 1)

    assert still_engine.result(*good).n_generated == 12
    with pytest.raises(OutOfMemory):
        still_engine.result(*bad)
    assert n_free_slots(still_engine) == still_engine.model.slots


def test_resumed_job_of_several_sequences_that_fails_ends_once(
    still_engine: TinyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(runs: list[Run]) -> Any:
        raise MemoryError

    monkeypatch.setattr(still_engine.model, "read", read)
    _, ear = still_engine.submit(job(sequences_count=3), {index: [1, 2] for index in range(3)})
    ends: list[Exception | None] = []
    monkeypatch.setattr(ear, "end", ends.append)
    steps(still_engine, 2)

    assert [type(error) for error in ends] == [OutOfMemory]
    assert n_free_slots(still_engine) == still_engine.model.slots


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("fields", [{"top_k": 1}, {"top_k": 3, "penalty_alpha": 0.5}])
def test_scores_that_are_no_numbers_are_the_models_fault(
    engine: TinyEngine, monkeypatch: pytest.MonkeyPatch, value: float, fields: dict[str, Any]
) -> None:
    healthy = engine.model.read

    def read(runs: list[Run]) -> Any:
        outcome = healthy(runs)
        return dataclasses.replace(outcome, logits=torch.full_like(outcome.logits, value))

    with monkeypatch.context() as broken:
        broken.setattr(engine.model, "read", read)
        with pytest.raises(EngineFailure, match="not numbers"):
            engine.generate(**fields)

    assert engine.generate(**fields).n_generated == 12


def test_stopped_engine_lets_go_of_everything() -> None:
    engine = TinyEngine()
    running_job = engine.submit(job(generated_tokens_count=200, max_total_tokens=240))
    running_job[1].n_heard.acquire()

    engine.stop()
    late = engine.submit(job())

    for submitted in (running_job, late):
        with pytest.raises(EngineStopped):
            engine.result(*submitted)


def test_error_of_the_loop_itself_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = TinyEngine()

    monkeypatch.setattr(engine.engine, "step", lambda: 1 / 0)

    assert engine.died.wait(60)


def test_long_prompt_does_not_stop_running_rows(still_engine: TinyEngine) -> None:
    _, ear = still_engine.submit(job(generated_tokens_count=60))
    steps(still_engine, 4)
    n_before = len(ear.tokens[0])
    still_engine.submit(job(prompt="A red house. " * 20, max_total_tokens=220))

    steps(still_engine, 5)

    assert len(ear.tokens[0]) - n_before == 5


def test_text_that_is_only_read_lets_prompts_pass_that_wait_for_a_token(
    still_engine: TinyEngine,
) -> None:
    text = TextToRead(ids=tuple(range(70, 170)), question=Question(first_told=99))
    read = Ear()
    still_engine.engine.submit(still_engine.preparer.prepare_reading(text, read))
    still_engine.engine.step()
    _, heard = still_engine.submit(job(generated_tokens_count=2))
    for _ in range(4):
        still_engine.engine.step()

    assert heard.ended.is_set()
    assert not read.ended.is_set()


def test_submitting_from_many_threads_loses_nothing(engine: TinyEngine) -> None:
    barrier = threading.Barrier(16)

    def one(seed: int) -> int:
        barrier.wait()
        return engine.generate(seed=seed, temperature=1.0, generated_tokens_count=5).n_generated

    with ThreadPoolExecutor(16) as pool:
        counts = list(pool.map(one, range(16)))

    assert counts == [5] * 16
