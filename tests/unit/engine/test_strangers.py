"""A request among thirty-one strangers gives what it gives alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from standard_jobs import plain_job
from tiny_engine import TinyEngine, answer, job, running

from neodim_sampling.errors import StopPatternTimeout
from workers.contract.errors import EngineFailure, OutOfMemory
from workers.contract.text_result import TextResult
from workers.engine.generation import Generation
from workers.engine.text_model import Outcome, Run

pytestmark = pytest.mark.model

SENTENCE = "The old cat sees a red house near the river. "
WARPERS: dict[str, list[Any]] = {
    "temperature": [0.3, 0.6, 1.0, 1.7],
    "top_k": [1, 2, 40],
    "top_p": [0.3, 0.9],
    "tfs": [0.5, 0.95],
    "typical": [0.2, 0.9],
    "top_a": [0.1, 0.5],
}


def random_fields(chance: random.Random) -> dict[str, Any]:
    """A request of any kind."""
    fields: dict[str, Any] = {
        "prompt": SENTENCE * chance.randrange(1, 5) + chance.choice(["One", "A red", "x", ""]),
        "preamble": chance.choice(["", "", "Story: ", SENTENCE]),
        "generated_tokens_count": chance.randrange(1, 25),
        "max_total_tokens": chance.choice([60, 200]),
        "seed": chance.randrange(2**40),
    }
    for name in chance.sample(sorted(WARPERS), chance.randrange(4)):
        fields[name] = chance.choice(WARPERS[name])
    if chance.random() < 0.4:
        fields |= {
            "repetition_penalty": chance.choice([0.8, 1.25, 2.0]),
            "repetition_penalty_range": chance.choice([0, 8, 512]),
            "repetition_penalty_slope": chance.choice([0.0, 0.5, 3.0]),
        }
    if chance.random() < 0.3:
        fields |= {"no_repeat_ngram_size": chance.choice([1, 2, 4]), "can_stop_early": True}
    if chance.random() < 0.3:
        kind = chance.choice(["string", "regex"])
        pattern = "e" if kind == "string" else "[a-z]{2}"
        fields |= {"stop_strings": [pattern], "stop_strings_type": kind}
    if chance.random() < 0.2:
        fields |= {"words_blacklist": ["the", "cat", "a"]}
    if chance.random() < 0.15:
        fields |= {"penalty_alpha": 0.6, "top_k": 4}
    elif chance.random() < 0.3:
        fields["sequences_count"] = chance.randrange(2, 5)
    return fields


def random_standard_fields(chance: random.Random) -> dict[str, Any]:
    """A completion of any kind."""
    fields: dict[str, Any] = {
        "prompt": SENTENCE * chance.randrange(1, 5) + chance.choice(["One", "A red", "x"]),
        "max_tokens": chance.randrange(0, 25),
        "seed": chance.randrange(2**40),
        "temperature": chance.choice([0, 0.6, 1.0, 1.7]),
        "n": chance.choice([1, 1, 2, 4]),
    }
    if chance.random() < 0.5:
        fields["logprobs"] = chance.choice([0, 1, 20])
    if chance.random() < 0.4:
        fields["echo"] = True
    if chance.random() < 0.4:
        fields["presence_penalty"] = chance.choice([-1, 0.5, 2])
        fields["frequency_penalty"] = chance.choice([-0.5, 0, 1.5])
    if chance.random() < 0.3:
        fields["logit_bias"] = {"70": chance.choice([-100, -5, 8]), "333": 4}
    if chance.random() < 0.4:
        fields["stop"] = chance.choice(["e", ["house", "a"]])
    if chance.random() < 0.2:
        fields["best_of"] = fields["n"] + 2
    return fields


def written(result: TextResult) -> list[tuple[Any, ...]]:
    """What texts and prompt a result has."""
    echo = result.prompt.echo
    prompt = None if echo is None else [(each.token, each.text) for each in echo]
    texts = [(each.text, each.tokens, each.finish_reason) for each in result.sequences]
    return [(prompt, result.n_made), *texts]


def log_probs(result: TextResult) -> list[float]:
    """Every log-probability that a result tells, alternatives included."""
    scores = [*(result.prompt.echo or ())]
    scores += [each for sequence in result.sequences for each in sequence.scores or ()]
    own = [each.log_prob for each in scores if each.log_prob is not None]
    return [*own, *(top.log_prob for each in scores for top in each.top)]


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_requests_of_all_protocols_among_each_other_give_what_they_give_alone(
    family: str,
) -> None:
    chance = random.Random(13)
    jobs = [plain_job(**random_standard_fields(chance)) for _ in range(24)]
    jobs += [job(**random_fields(chance)) for _ in range(8)]
    with running(family, slots=32) as engine:
        alone = [engine.result(*engine.submit(each)) for each in jobs]

    with running(family, slots=32) as engine, ThreadPoolExecutor(32) as pool:
        together = list(pool.map(lambda each: engine.result(*engine.submit(each)), jobs))

    assert list(map(written, together)) == list(map(written, alone))
    for ours, theirs in zip(together, alone, strict=True):
        assert log_probs(ours) == pytest.approx(log_probs(theirs), abs=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_random_requests_among_strangers_give_what_they_give_alone(family: str) -> None:
    chance = random.Random(11)
    requests = [random_fields(chance) for _ in range(32)]
    with running(family, slots=32) as engine:
        alone = [answer(engine.generate(**fields)) for fields in requests]

    with running(family, slots=32) as engine, ThreadPoolExecutor(32) as pool:
        together = list(pool.map(lambda fields: answer(engine.generate(**fields)), requests))

    assert together == alone


def out_of_range_id(engine: TinyEngine, generation: Generation) -> None:
    generation.sequences[0].row.banned = torch.tensor([10**6])


def out_of_memory(engine: TinyEngine, generation: Generation) -> None:
    healthy = engine.model.read

    def read(runs: SequenceOf[Run]) -> Outcome:
        if any(run.slot == generation.sequences[0].slot and run.start > 16 for run in runs):
            raise torch.OutOfMemoryError
        return healthy(runs)

    # Of this one engine, which only the test sees.
    engine.model.read = read  # type: ignore[method-assign]


def slow_pattern(engine: TinyEngine, generation: Generation) -> None:
    """Nothing to be done: the request brings it with it."""


SLOW = {"stop_strings": [r"(?s)(?:.|.)*[\x00-\x01]{3}"], "stop_strings_type": "regex"}


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize(
    ("break_it", "fields", "error"),
    [
        (out_of_range_id, {}, EngineFailure),
        (out_of_memory, {}, OutOfMemory),
        (slow_pattern, SLOW, StopPatternTimeout),
    ],
)
def test_bad_row_changes_nobody_else(
    family: str,
    break_it: Callable[[TinyEngine, Generation], None],
    fields: dict[str, Any],
    error: type[Exception],
) -> None:
    chance = random.Random(12)
    requests = [random_fields(chance) for _ in range(8)]
    with running(family, slots=32) as engine:
        expected = [answer(engine.generate(**each)) for each in requests]

    bad_fields = {"prompt": SENTENCE + "Bad", "generated_tokens_count": 80} | fields
    engine = TinyEngine(family, slots=32, is_running=False)
    bad = engine.submit(job(**bad_fields))
    break_it(engine, bad[0])
    submitted = [engine.submit(job(**each)) for each in requests]
    engine.engine.start()
    together = [answer(engine.result(*each)) for each in submitted]

    with pytest.raises(error):
        engine.result(*bad)
    engine.stop()
    assert together == expected
