"""Sequences that end each on their own, and texts that go on for as long as there is room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from standard_jobs import SENTENCE, plain_job, spoken_job
from tiny_engine import TinyEngine, job, running

from neodim_sampling.errors import InvalidParams, PromptTooLong
from workers.contract.text_job import TextJob
from workers.contract.text_result import FinishReason, TextResult

pytestmark = pytest.mark.model

STOP = "e"
FIELDS: dict[str, Any] = {"n": 4, "temperature": 1.2, "max_tokens": 40}


@pytest.fixture(params=["gpt2", "llama"])
def engine(request: pytest.FixtureRequest) -> Iterator[TinyEngine]:
    with running(request.param, max_length=120) as engine:
        yield engine


def run(engine: TinyEngine, **fields: Any) -> TextResult:
    return engine.result(*engine.submit(plain_job(**fields)))


def eos_id(engine: TinyEngine) -> int:
    (token,) = engine.preparer._eos_ids
    return token


def test_each_text_ends_at_its_own_stop_while_its_siblings_go_on(engine: TinyEngine) -> None:
    whole = run(engine, **FIELDS)

    cut = run(engine, **FIELDS, stop=STOP)

    for before, after in zip(whole.sequences, cut.sequences, strict=True):
        text, stop, _ = before.text.partition(STOP)
        assert (after.text, after.stop_match) == (text, stop)
        assert after.finish_reason is (FinishReason.STOP if stop else FinishReason.LENGTH)
        assert after.tokens == before.tokens[: len(after.tokens)]
    lengths = {len(each.tokens) for each in cut.sequences}
    assert len(lengths) > 1
    assert cut.n_made == sum(len(each.tokens) for each in cut.sequences)


def test_texts_of_neodims_protocol_still_end_together(engine: TinyEngine) -> None:
    fields = {"sequences_count": 4, "temperature": 1.2, "generated_tokens_count": 40}

    result = engine.result(*engine.submit(job(**fields, stop_strings=[STOP])))

    assert len({len(each.tokens) for each in result.sequences}) == 1


def test_ended_text_gives_its_row_back_at_once() -> None:
    engine = TinyEngine(is_running=False)
    generation, ear = engine.submit(plain_job(**FIELDS, stop=STOP))
    slots = engine.engine._slots

    while not ear.ended.is_set():
        engine.engine.step()
        held = [each for each in generation.sequences if each.slot is not None]
        if not ear.ended.is_set() and not engine.engine._prefill.is_waiting(generation):
            assert held == generation.growing
        assert slots.n_free == 8 - len(held)

    assert slots.n_free == 8


def test_row_of_an_ended_text_is_somebody_elses_while_its_siblings_go_on() -> None:
    engine = TinyEngine(slots=4, is_running=False)
    generation, ear = engine.submit(plain_job(**FIELDS, stop=STOP))
    other, other_ear = engine.submit(plain_job(seed=9))

    while other.sequences[0].slot is None:
        engine.engine.step()

    assert generation.growing
    assert not ear.ended.is_set()
    while not (ear.ended.is_set() and other_ear.ended.is_set()):
        engine.engine.step()
    alone = TinyEngine(slots=4, is_running=False)
    lone, lone_ear = alone.submit(plain_job(seed=9))
    while not lone_ear.ended.is_set():
        alone.engine.step()
    assert engine.result(other, other_ear).sequences == alone.result(lone, lone_ear).sequences


def test_ended_text_is_told_without_its_stop(engine: TinyEngine) -> None:
    generation, ear = engine.submit(plain_job(**FIELDS, stop=STOP))

    result = engine.result(generation, ear)

    assert [ear.texts.get(n, "") for n in range(4)] == [each.text for each in result.sequences]


@pytest.mark.parametrize("n_steps", [4, 9])
def test_resumed_texts_stay_ended(engine: TinyEngine, n_steps: int) -> None:
    fields = {**FIELDS, "stop": STOP}
    undisturbed = run(engine, **fields)
    made = {n: each.tokens[:n_steps] for n, each in enumerate(undisturbed.sequences)}

    resumed = engine.result(*engine.submit(plain_job(**fields), made))

    assert resumed.sequences == undisturbed.sequences


def test_text_without_a_length_goes_on_to_the_end_of_its_row(engine: TinyEngine) -> None:
    n_prompt = len(engine.codec.encode_bare(f"user: {SENTENCE}\n"))

    result = engine.result(
        *engine.submit(spoken_job(SENTENCE, logit_bias={str(eos_id(engine)): -100}))
    )

    (sequence,) = result.sequences
    assert len(sequence.tokens) == 120 - n_prompt
    assert sequence.finish_reason is FinishReason.LENGTH


def test_text_without_a_length_ends_at_its_own_end(engine: TinyEngine) -> None:
    bias = {str(eos_id(engine)): 100}

    result = engine.result(*engine.submit(spoken_job("x", logit_bias=bias)))

    (sequence,) = result.sequences
    assert sequence.tokens == (eos_id(engine),)
    assert (sequence.text, sequence.finish_reason) == ("", FinishReason.END_OF_TEXT)


def test_end_of_text_as_the_last_token_allowed_is_an_end_and_no_length(engine: TinyEngine) -> None:
    result = run(engine, max_tokens=1, logit_bias={str(eos_id(engine)): 100})

    assert result.sequences[0].finish_reason is FinishReason.END_OF_TEXT


def test_prompt_that_fills_its_row_leaves_no_room(engine: TinyEngine) -> None:
    with pytest.raises(PromptTooLong, match=r"^messages: \d+ input tokens and 1 generated"):
        engine.submit(spoken_job("cat " * 200))


@pytest.mark.parametrize("bias", [{"511": 1}, {"511": -100}])
def test_bias_of_a_token_that_is_none_is_refused(
    engine: TinyEngine, bias: dict[str, float]
) -> None:
    with pytest.raises(InvalidParams, match=r"^logit_bias: there is no token 511; ids are below"):
        engine.submit(plain_job(logit_bias=bias))


def test_banned_token_never_comes(engine: TinyEngine) -> None:
    usual = run(engine, temperature=0, max_tokens=1).sequences[0].tokens[0]

    banned = run(engine, temperature=0, max_tokens=20, logit_bias={str(usual): -100})

    assert usual not in banned.sequences[0].tokens


def test_frequency_penalty_keeps_a_greedy_text_from_repeating_itself(engine: TinyEngine) -> None:
    favoured = {"70": 60, "71": 59.5}

    plain = run(engine, temperature=0, max_tokens=8, logit_bias=favoured)
    varied = run(engine, temperature=0, max_tokens=8, logit_bias=favoured, frequency_penalty=2)

    assert set(plain.sequences[0].tokens) <= {70, 71}
    assert plain.sequences[0].tokens != varied.sequences[0].tokens


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (plain_job(prompt=[5] * 40, max_tokens=20), "max_tokens"),
        (plain_job(prompt=[5] * 50, max_tokens=1), "prompt"),
        (spoken_job("cat " * 60, max_tokens=1), "messages"),
        (spoken_job("cat " * 60), "messages"),
    ],
    ids=["both", "prompt", "chat", "chat without a length"],
)
def test_what_does_not_fit_is_named(asked: TextJob, field: str) -> None:
    engine = TinyEngine(max_length=50, is_running=False)

    with pytest.raises(PromptTooLong, match=f"^{field}: "):
        engine.submit(asked)
