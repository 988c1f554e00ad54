"""A job's passes: few at a time, and none goes on where one failed or the job was cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from reading_jobs import ReadingEngine, prompt, unheard
from scripted_engine import N_VOCAB, POISON, ScriptedEngine, Speller, scores_behind
from tiny_engine import TinyEngine

from neodim_sampling.parameters import WarperParams
from neodim_sampling.prompts import PlainPrompt
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints
from neodim_sampling.text.fitting import FittedPrompt
from neodim_sampling.text.stops import StopChecker
from workers.contract.errors import EngineFailure, EngineStopped
from workers.contract.reading_job import EvaluationJob, ExplanationJob, Granularity, ReadingJob
from workers.contract.text_job import TextJob
from workers.engine.generation import Generation, Sink
from workers.engine.likelihood import Likelihood
from workers.engine.questions import Question, TextToRead
from workers.engine.sequence import Sequence as TextSequence
from workers.engine.text_model import Outcome, Run
from workers.reading.passes import AT_ONCE, Passes

PATIENCE_S = 30


def text(*ids: int, first_told: int = 1) -> TextToRead:
    return TextToRead(ids=ids, question=Question(first_told=first_told))


def prepare(text: TextToRead, sink: Sink) -> Generation:
    """A generation for the scripted model, which has no tokenizer."""
    settings = RowSettings(warpers=WarperParams(), constraints=TokenConstraints(), n_vocab=N_VOCAB)
    ids = text.ids
    row = SamplingRow(settings=settings, input_ids=list(ids), n_preamble=0, seed=0)
    job = TextJob(model="m", prompt=PlainPrompt(ids=ids), max_new_tokens=0, seed=0)
    fitted = FittedPrompt(ids, 0, "", "", len(ids), len(ids), len(ids))
    # These stand in for what would want a tokenizer; nothing is told of the prompt's tokens.
    speller: Any = Speller()
    nobody: Any = None
    sequence = TextSequence(row, speller, StopChecker(None))
    return Generation(job, fitted, 0, [sequence], sink, nobody, text.question)


def test_progress_counts_the_passes_from_none_to_all() -> None:
    engine = ScriptedEngine(slots=2)
    engine.engine.start()
    heard: list[tuple[int, int]] = []

    Passes(prepare, engine.engine.submit, lambda *each: heard.append(each)).run(
        [text(1, 2), text(1, 3), text(2, 3)], n_scored
    )

    engine.engine.stop()
    assert heard == [(0, 3), (1, 3), (2, 3), (3, 3)]


def n_scored(generation: Generation) -> list[float]:
    return [each.log_prob for each in generation.prompt_likelihoods]


class Submitted:
    """Takes generations and ends them when it is told to."""

    def __init__(self) -> None:
        self.generations: list[Generation] = []
        self.came = threading.Semaphore(0)

    def __call__(self, generation: Generation) -> None:
        self.generations.append(generation)
        self.came.release()


class Running:
    """Passes that run in a thread of their own."""

    def __init__(self, texts: Sequence[TextToRead]) -> None:
        self.submitted = Submitted()
        self.passes = Passes(prepare, self.submitted, unheard)
        self.result: list[list[float]] | None = []
        self.error: Exception | None = None
        self._texts = texts
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self.passes.run(self._texts, n_scored)
        except EngineFailure as error:
            self.error = error

    def wait_for(self, n_submitted: int) -> None:
        for _ in range(n_submitted):
            assert self.submitted.came.acquire(timeout=PATIENCE_S)

    def wait_for_end(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@pytest.mark.model
def test_results_are_in_the_order_of_the_texts() -> None:
    engine = ScriptedEngine(slots=3, chunk=2)
    engine.engine.start()
    texts = [text(*range(1, 3 + n % 4)) for n in range(9)]

    found = Passes(prepare, engine.engine.submit, unheard).run(texts, n_scored)
    engine.engine.stop()

    assert found == [
        [
            pytest.approx(float(scores_behind(each.ids[:n]).log_softmax(-1)[each.ids[n]]))
            for n in range(1, len(each.ids))
        ]
        for each in texts
    ]


@pytest.mark.model
@pytest.mark.parametrize("chunk", [1, 2, 3, 16])
@pytest.mark.parametrize("first_told", [1, 2, 4, 5])
def test_likelihoods_are_told_from_the_first_that_is_asked(first_told: int, chunk: int) -> None:
    ids = (3, 1, 4, 1, 5)
    engine = ScriptedEngine(slots=2, chunk=chunk)
    engine.engine.start()
    passes = Passes(prepare, engine.engine.submit, unheard)

    found = [passes.run([text(*ids, first_told=first_told)], n_scored) for _ in range(2)]
    engine.engine.stop()

    expected = [
        pytest.approx(float(scores_behind(ids[:n]).log_softmax(-1)[ids[n]]))
        for n in range(first_told, len(ids))
    ]
    assert found == [[expected]] * 2


def test_engine_has_a_few_passes_at_a_time() -> None:
    running = Running([text(1, 2)] * (AT_ONCE + 2))

    running.wait_for(AT_ONCE)
    assert not running.submitted.came.acquire(timeout=0.05)
    for n in range(AT_ONCE + 2):
        _finish(running.submitted.generations[n])
        if n < 2:
            running.wait_for(1)
    running.wait_for_end()

    assert running.result == [[0.5]] * (AT_ONCE + 2)


def _finish(generation: Generation) -> None:
    generation.prompt_likelihoods.append(Likelihood(0.5, ()))
    generation.end()


def test_cancelled_passes_end_what_runs_and_begin_nothing_more() -> None:
    running = Running([text(1, 2)] * (AT_ONCE + 2))
    running.wait_for(AT_ONCE)

    running.passes.cancel()
    assert all(each.is_cancelled for each in running.submitted.generations)
    for each in running.submitted.generations:
        each.end()
    running.wait_for_end()

    assert running.result is None
    assert len(running.submitted.generations) == AT_ONCE


def test_cancel_before_anything_began_begins_nothing() -> None:
    submitted = Submitted()
    passes = Passes(prepare, submitted, unheard)

    passes.cancel()

    assert passes.run([text(1, 2)], n_scored) is None
    assert submitted.generations == []


def test_cancel_behind_the_last_end_comes_too_late() -> None:
    running = Running([text(1, 2)])
    running.wait_for(1)

    _finish(running.submitted.generations[0])
    running.wait_for_end()
    running.passes.cancel()

    assert running.result == [[0.5]]


def test_failed_pass_ends_the_others_before_its_error_is_told() -> None:
    running = Running([text(1, 2)] * (AT_ONCE + 2))
    running.wait_for(AT_ONCE)
    first, *others = running.submitted.generations

    first.end(EngineFailure("broken"))
    for each in others:
        assert each._cancelled.wait(PATIENCE_S)
        assert running.error is None
        each.end()
    running.wait_for_end()

    assert str(running.error) == "broken"
    assert len(running.submitted.generations) == AT_ONCE


@pytest.mark.model
def test_text_that_cannot_be_read_fails_its_job_alone() -> None:
    engine = ScriptedEngine(slots=4)
    engine.engine.start()

    with pytest.raises(EngineFailure):
        Passes(prepare, engine.engine.submit, unheard).run(
            [text(1, 2), text(POISON, 2)] * 3, n_scored
        )
    found = Passes(prepare, engine.engine.submit, unheard).run([text(1, 2)], n_scored)
    engine.engine.stop()

    assert found is not None
    assert engine.engine._slots.n_free == 4


@pytest.mark.model
def test_stopped_engine_gives_every_job_back(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ReadingEngine(TinyEngine("gpt2"))
    model = engine.engine.model
    healthy, has_begun, may_go_on = model.read, threading.Event(), threading.Event()

    def read(runs: Sequence[Run]) -> Outcome:
        has_begun.set()
        assert may_go_on.wait(PATIENCE_S)
        return healthy(runs)

    monkeypatch.setattr(model, "read", read)
    jobs: list[ReadingJob] = [
        EvaluationJob(model="m", prompt=prompt("a" * 99), expected="b"),
        ExplanationJob(
            model="m", prompt=prompt("word " * 30), target="b", granularity=Granularity.WORD
        ),
    ]
    stopper = threading.Thread(target=engine.engine.stop)
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(engine.do, job) for job in jobs]
        assert has_begun.wait(PATIENCE_S)
        stopper.start()
        while not engine.engine.engine._is_stopping:
            time.sleep(0.001)
        may_go_on.set()
        errors = [each.exception(PATIENCE_S) for each in ends]
    stopper.join(PATIENCE_S)

    assert [type(each) for each in errors] == [EngineStopped, EngineStopped]
