"""Log-probabilities are those of a direct forward pass, whatever a request does to its scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from standard_jobs import SENTENCE, plain_job
from tiny_engine import Ear, TinyEngine, parts, running
from torch import Tensor

from workers.contract.errors import EngineFailure, OutOfMemory
from workers.contract.text_result import (
    Alternative,
    SequenceResult,
    TextDelta,
    TextResult,
    TokenScore,
    join_deltas,
)
from workers.engine import reading
from workers.engine.likelihood import LEAST, ROWS_AT_ONCE, likelihoods, prompt_likelihoods

pytestmark = pytest.mark.model

TOLERANCE = 1e-4


@pytest.fixture(params=["gpt2", "llama"])
def family(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def engine(family: str) -> Iterator[TinyEngine]:
    """Reads prompts in chunks of 5, so that most take several."""
    with running(family, chunk=5) as engine:
        yield engine


@torch.inference_mode()
def direct(family: str, ids: Sequence[int]) -> Tensor:
    """[T, V] log-probabilities of what comes behind each token."""
    model, _ = parts(family)
    logits: Tensor = model(torch.tensor([list(ids)])).logits[0]
    return logits.log_softmax(-1)


def check(family: str, scores: Sequence[TokenScore], expected: Tensor, n_top: int) -> None:
    """Each score is that of its row in a direct pass, and so are its alternatives."""
    _, codec = parts(family)
    assert len(scores) == len(expected)
    for score, row in zip(scores, expected, strict=True):
        assert score.log_prob == pytest.approx(float(row[score.token]), abs=TOLERANCE)
        best = row[: codec.n_vocab].topk(n_top).values.tolist()
        assert [each.log_prob for each in score.top] == pytest.approx(best, abs=TOLERANCE)
        for each in score.top:
            assert each.log_prob == pytest.approx(float(row[each.token]), abs=TOLERANCE)
            assert each.text == codec.piece(each.token)


def run(engine: TinyEngine, **fields: Any) -> TextResult:
    return engine.result(*engine.submit(plain_job(**fields)))


def ids_of(family: str, prompt: str = SENTENCE) -> list[int]:
    return parts(family)[1].encode(prompt)


def scores_of(sequence: SequenceResult) -> tuple[TokenScore, ...]:
    assert sequence.scores is not None
    return sequence.scores


def check_generated(family: str, result: TextResult, n_top: int, prompt: str = SENTENCE) -> None:
    prompt_ids = ids_of(family, prompt)
    for sequence in result.sequences:
        expected = direct(family, [*prompt_ids, *sequence.tokens])[len(prompt_ids) - 1 : -1]
        assert tuple(each.token for each in scores_of(sequence)) == sequence.tokens
        check(family, scores_of(sequence), expected, n_top)


def check_echo(family: str, result: TextResult, n_top: int, prompt: str = SENTENCE) -> None:
    prompt_ids = ids_of(family, prompt)
    echo = result.prompt.echo
    assert echo is not None
    assert [each.token for each in echo] == prompt_ids
    assert (echo[0].log_prob, echo[0].top) == (None, ())
    check(family, echo[1:], direct(family, prompt_ids)[:-1], n_top)


@pytest.mark.parametrize("n_top", [0, 1, 20])
def test_generated_tokens_have_the_log_probabilities_of_a_direct_pass(
    family: str, engine: TinyEngine, n_top: int
) -> None:
    check_generated(family, run(engine, logprobs=n_top, n=2), n_top)


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0},
        {"temperature": 1.7, "top_p": 0.9},
        {"top_k": 1},
        {"min_p": 1.0, "tfs": 0.1},
        {"presence_penalty": 2, "frequency_penalty": -1.5},
        {"logit_bias": {"5": -100, "70": 30}},
        {"repetition_penalty": 3, "words_blacklist": ["the"]},
    ],
    ids=str,
)
def test_nothing_that_a_request_does_to_scores_changes_log_probabilities(
    family: str, engine: TinyEngine, fields: dict[str, Any]
) -> None:
    check_generated(family, run(engine, logprobs=5, **fields), 5)


def test_echoed_prompt_has_the_log_probabilities_of_a_direct_pass(
    family: str, engine: TinyEngine
) -> None:
    result = run(engine, echo=True, logprobs=3)

    check_echo(family, result, 3)
    check_generated(family, result, 3)


@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_echo_is_the_same_in_chunks_of_any_size(family: str, chunk: int) -> None:
    long = SENTENCE * 3
    with running(family, chunk=chunk) as engine:
        check_echo(family, run(engine, prompt=long, echo=True, logprobs=2, n=2), 2, long)


def test_prompt_alone_is_scored_where_nothing_is_to_be_generated(
    family: str, engine: TinyEngine
) -> None:
    result = run(engine, echo=True, logprobs=1, max_tokens=0)

    check_echo(family, result, 1)
    assert [each.tokens for each in result.sequences] == [()]
    assert (result.n_made, result.is_partial) == (0, False)
    assert engine.engine._slots.n_free == 8


def test_prompt_of_one_token_has_no_log_probability(engine: TinyEngine) -> None:
    result = run(engine, prompt=[70], echo=True, logprobs=1, max_tokens=0)

    assert [(each.token, each.log_prob) for each in result.prompt.echo or ()] == [(70, None)]


def test_echo_alone_tells_the_tokens_without_log_probabilities(
    family: str, engine: TinyEngine
) -> None:
    result = run(engine, echo=True)

    echo = result.prompt.echo
    assert echo is not None
    assert [each.token for each in echo] == ids_of(family)
    assert {each.log_prob for each in echo} == {None}
    assert result.sequences[0].scores is None


@pytest.mark.parametrize("prompt", [SENTENCE, "\u4f60\u597d \U0001f468\u200d\U0001f469", "\u00e9"])
def test_echoed_tokens_spell_the_prompt(family: str, engine: TinyEngine, prompt: str) -> None:
    result = run(engine, prompt=prompt, echo=True, max_tokens=0)

    texts = [each.text for each in result.prompt.echo or ()]
    assert "".join(texts) == parts(family)[1].decode(ids_of(family, prompt))


@pytest.mark.parametrize("ending", [{}, {"stop": "e"}, {"logit_bias": {"0": 5, "2": 5}}], ids=str)
def test_scores_spell_the_text(engine: TinyEngine, ending: dict[str, Any]) -> None:
    results = [
        run(engine, logprobs=0, max_tokens=n, temperature=1.5, n=8, **ending) for n in (3, 12, 40)
    ]

    sequences = [each for result in results for each in result.sequences]
    for sequence in sequences:
        spelt = "".join(each.text for each in scores_of(sequence))
        assert spelt == sequence.text + sequence.stop_match + sequence.tail
    assert any(each.text.endswith("\ufffd") for each in sequences)


REQUESTS: list[dict[str, Any]] = [
    {"logprobs": 3},
    {"logprobs": 0, "n": 3, "temperature": 1.3},
    {"echo": True, "logprobs": 2, "prompt": SENTENCE * 3},
    {"echo": True, "logprobs": 1, "max_tokens": 0, "prompt": SENTENCE * 2},
    {"echo": True, "logprobs": 20, "frequency_penalty": 1.5},
    {"logprobs": 5, "presence_penalty": 2, "max_tokens": 30},
    {},
    {"n": 2, "best_of": 3, "logprobs": 1},
]


def test_log_probabilities_among_strangers_are_those_of_a_direct_pass(family: str) -> None:
    with running(family, slots=16, chunk=7) as engine, ThreadPoolExecutor(24) as pool:
        requests = REQUESTS * 3
        results = list(pool.map(lambda fields: run(engine, **fields), requests))

    for fields, result in zip(requests, results, strict=True):
        prompt = fields.get("prompt", SENTENCE)
        if fields.get("echo"):
            check_echo(family, result, fields["logprobs"], prompt)
        if "logprobs" in fields:
            check_generated(family, result, fields["logprobs"], prompt)
        else:
            assert result.sequences[0].scores is None


class Recorder(Ear):
    """Keeps what it hears as a stream of events would."""

    def __init__(self) -> None:
        super().__init__()
        self.deltas: dict[int, list[TextDelta]] = {}

    def add(self, deltas: Sequence[TextDelta], n_generated: int) -> None:
        for delta in deltas:
            self.deltas.setdefault(delta.sequence, []).append(delta)
        super().add(deltas, n_generated)

    @property
    def made(self) -> dict[int, TextDelta]:
        return {index: join_deltas(index, each) for index, each in self.deltas.items()}


@pytest.mark.parametrize(
    ("n_steps", "n_made"),
    [(2, set()), (11, {8, 9}), (40, {12})],
    ids=["within the prompt", "within the text", "when all was made"],
)
def test_resumed_job_tells_what_an_undisturbed_one_does(
    family: str, n_steps: int, n_made: set[int]
) -> None:
    fields = {"echo": True, "logprobs": 3, "n": 2, "frequency_penalty": 1.0}
    broken = TinyEngine(family, chunk=5, is_running=False)
    heard = Recorder()
    broken.engine.submit(broken.preparer.prepare(plain_job(**fields), {}, heard))
    for _ in range(n_steps):
        broken.engine.step()
    made = heard.made

    with running(family, chunk=5) as engine:
        undisturbed = run(engine, **fields)
        ear = Ear()
        generation = engine.preparer.prepare(plain_job(**fields), made, ear)
        engine.engine.submit(generation)
        resumed = engine.result(generation, ear)

    assert {len(each.tokens) for each in made.values()} <= n_made
    assert [each.tokens for each in resumed.sequences] == [
        each.tokens for each in undisturbed.sequences
    ]
    check_echo(family, resumed, 3)
    check_generated(family, resumed, 3)


def test_what_is_published_has_the_scores_of_its_tokens(family: str) -> None:
    engine = TinyEngine(family, is_running=False)
    heard = Recorder()
    generation = engine.preparer.prepare(plain_job(logprobs=2, n=2), {}, heard)
    engine.engine.submit(generation)
    while not heard.ended.is_set():
        engine.engine.step()

    result = engine.result(generation, heard)

    for index, sequence in enumerate(result.sequences):
        assert heard.made[index].scores == sequence.scores


def test_best_candidates_are_kept_best_first(family: str, engine: TinyEngine) -> None:
    fields = {"temperature": 1.3, "logprobs": 0}
    everyone = run(engine, n=6, **fields)

    kept = run(engine, n=2, best_of=6, **fields)

    def mean(sequence: SequenceResult) -> float:
        values = [each.log_prob or 0.0 for each in scores_of(sequence)]
        return sum(values) / len(values)

    best = sorted(everyone.sequences, key=mean, reverse=True)[:2]
    assert [each.tokens for each in kept.sequences] == [each.tokens for each in best]
    assert kept.n_made == 6 * 12


def test_candidates_are_compared_although_nobody_asks_for_log_probabilities(
    engine: TinyEngine,
) -> None:
    fields = {"temperature": 1.3, "n": 1, "best_of": 6}

    quiet, telling = run(engine, **fields), run(engine, **fields, logprobs=0)

    assert quiet.sequences[0].tokens == telling.sequences[0].tokens
    assert quiet.sequences[0].scores is None


def test_likelihoods_of_a_hand_worked_row() -> None:
    logits = torch.tensor([[math.log(1), math.log(2), math.log(5)], [0.0, 0.0, 0.0]])

    first, second = likelihoods(logits, [1, 2], 2, 3)

    assert first.log_prob == pytest.approx(math.log(2 / 8))
    assert first.top == (
        (2, pytest.approx(math.log(5 / 8))),
        (1, pytest.approx(math.log(2 / 8))),
    )
    assert second.log_prob == pytest.approx(math.log(1 / 3))


def test_likelihood_of_the_impossible_is_a_number() -> None:
    logits = torch.tensor([[0.0, -math.inf, -1e30]])

    (found,) = likelihoods(logits, [1], 3, 3)

    assert found.log_prob == LEAST
    assert [value for _, value in found.top] == [0.0, LEAST, LEAST]


def test_ids_that_pad_a_vocabulary_are_no_alternatives() -> None:
    (found,) = likelihoods(torch.tensor([[0.0, 1.0, 2.0, 9.0]]), [0], 2, 3)

    assert [token for token, _ in found.top] == [2, 1]


def test_likelihoods_leave_the_scores_alone() -> None:
    logits = torch.tensor([[0.0, -math.inf]])

    likelihoods(logits, [0], 1, 2)

    assert logits.tolist() == [[0.0, -math.inf]]


def test_long_prompts_are_scored_in_parts_that_are_each_small() -> None:
    sizes: list[int] = []

    def score(hidden: Tensor) -> Tensor:
        sizes.append(len(hidden))
        return hidden

    n_tokens = 2 * ROWS_AT_ONCE + 3
    hidden = torch.randn(n_tokens, 5, generator=torch.Generator().manual_seed(1))
    tokens = [n % 5 for n in range(n_tokens)]

    found = prompt_likelihoods(score, hidden, tokens, 1, 5)

    assert sizes == [ROWS_AT_ONCE, ROWS_AT_ONCE, 3]
    assert found == likelihoods(hidden, tokens, 1, 5)


def test_alternatives_are_spelt_as_within_a_text(engine: TinyEngine, family: str) -> None:
    result = run(engine, logprobs=20, max_tokens=1)

    (score,) = scores_of(result.sequences[0])
    assert all(isinstance(each, Alternative) for each in score.top)
    assert any(each.text.startswith(" ") for each in score.top)


@pytest.mark.parametrize("n_steps", [0, 3, 9])
def test_prompt_that_cannot_be_scored_changes_nobody_else(
    family: str, n_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[dict[str, Any]] = [{"seed": n, "prompt": SENTENCE * n} for n in (1, 2, 3)]
    with running(family) as engine:
        alone = [run(engine, **fields) for fields in requests]
    engine = TinyEngine(family, is_running=False)

    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(reading, "prompt_likelihoods", fail)
    submitted = [engine.submit(plain_job(**fields)) for fields in requests]
    for _ in range(n_steps):
        engine.engine.step()
    bad = engine.submit(plain_job(prompt="One cat", echo=True, logprobs=1))
    behind = engine.submit(plain_job(**requests[0]))
    engine.engine.start()
    together = [engine.result(*each) for each in (*submitted, behind)]

    with pytest.raises(OutOfMemory):
        engine.result(*bad)
    assert engine.engine._slots.n_free == 8
    assert together == [*alone, alone[0]]
    assert engine.result(*engine.submit(plain_job(**requests[2]))) == alone[2]
    engine.stop()


def test_prompt_whose_scores_are_no_numbers_fails(
    engine: TinyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(hidden: Tensor) -> Tensor:
        return hidden.new_full((len(hidden), 511), torch.nan)

    monkeypatch.setattr(engine.model, "score", score)

    with pytest.raises(EngineFailure, match="scores are not numbers"):
        run(engine, echo=True, logprobs=1, max_tokens=0)
