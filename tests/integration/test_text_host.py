"""A text worker with a real Redis and a tiny model: reading jobs from claim to record."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from neodim_sampling.prompt_items import ItemsPrompt, TextItem
from workers.contract.image_job import ImageJob
from workers.contract.job_body import Job
from workers.contract.job_record import JobRecord, JobState
from workers.contract.reading_job import (
    EmbeddingJob,
    EmbeddingResult,
    EvaluationJob,
    EvaluationResult,
    ExplanationJob,
    ExplanationResult,
    Granularity,
    Pooling,
)
from workers.contract.settings import Settings
from workers.contract.store import JobStore
from workers.engine.text_model import Outcome, Run
from workers.text_host import TextHost

pytestmark = [pytest.mark.redis, pytest.mark.model]

MODEL = "tiny"
TINY = Path(__file__).parents[1] / "data" / "tiny" / "gpt2"
PROMPT = ItemsPrompt(items=(TextItem(text="The old cat sees a red house near the river."),))
EVALUATION = EvaluationJob(model=MODEL, prompt=PROMPT, expected=" One dog")
EXPLANATION = ExplanationJob(
    model=MODEL, prompt=PROMPT, target=" One dog", granularity=Granularity.WORD
)
EMBEDDING = EmbeddingJob(model=MODEL, prompts=(PROMPT,), layers=(-1,), pooling=(Pooling.MEAN,))


@pytest.fixture
def host(redis_url: str, tmp_path: Path) -> Iterator[TextHost]:
    """A worker that serves; jobs are run by whoever calls it."""
    settings = Settings(
        model=str(TINY),
        model_name=MODEL,
        redis_url=redis_url,
        slots=4,
        data_dir=str(tmp_path),
        precision="float32",
    )
    host = TextHost(settings, "reader-1", "cid")
    host.announce()
    host.serve()
    yield host
    host.stop()
    host.leave()


def done(host: TextHost, store: JobStore, job: Job) -> JobRecord:
    record = store.create("aleph_alpha", job)
    host.run_next_job()
    return store.get(record.id)


def test_reading_jobs_end_with_their_results(host: TextHost, store: JobStore) -> None:
    records = [done(host, store, job) for job in (EVALUATION, EXPLANATION, EMBEDDING)]

    assert [each.state for each in records] == [JobState.SUCCEEDED] * 3
    evaluation, explanation, embedding = [each.result for each in records]
    assert isinstance(evaluation, EvaluationResult)
    assert evaluation.n_characters == 8
    assert evaluation.log_prob < 0
    assert isinstance(explanation, ExplanationResult)
    assert [len(each) for each in explanation.explanations[0].items] == [10]
    assert explanation.n_variants == 11
    assert isinstance(embedding, EmbeddingResult)
    ((layer, pooling, vector),) = embedding.embeddings[0].vectors
    assert (layer, pooling, len(vector)) == (2, Pooling.MEAN, 32)


def test_job_that_cannot_be_done_fails_with_what_is_allowed(
    host: TextHost, store: JobStore
) -> None:
    wrong = EmbeddingJob(model=MODEL, prompts=(PROMPT,), layers=(9,), pooling=(Pooling.MEAN,))

    record = done(host, store, wrong)

    assert record.state is JobState.FAILED
    assert record.error == (
        "invalid_request",
        "layers: must be from -3 to 2 with this model, not 9",
    )


def test_picture_job_on_a_text_worker_fails(host: TextHost, store: JobStore) -> None:
    picture = ImageJob(model=MODEL, prompt="a cat", seed=1, width=64, height=64, steps=1)

    record = done(host, store, picture)

    assert record.state is JobState.FAILED
    assert record.error == ("engine_failure", "the job is not one for text")


class Held:
    """A model that waits in its first step until it may go on."""

    def __init__(self, host: TextHost, monkeypatch: pytest.MonkeyPatch) -> None:
        model = host._text_engine._model
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()
        self._healthy = model.read
        monkeypatch.setattr(model, "read", self._read)

    def _read(self, runs: list[Run]) -> Outcome:
        self.has_begun.set()
        assert self.may_go_on.wait(60)
        return self._healthy(runs)


def test_cancelled_reading_job_ends_as_cancelled_without_a_result(
    host: TextHost, store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(host, monkeypatch)
    record = store.create("aleph_alpha", EXPLANATION)
    runner = threading.Thread(target=host.run_next_job)
    runner.start()
    assert held.has_begun.wait(60)

    store.cancel(record.id)
    # The publisher hears of it with its next write, while the step still waits.
    while not all(each.is_cancelled for each in host._text_engine._running):
        time.sleep(0.001)
    held.may_go_on.set()
    runner.join(60)

    ended = store.get(record.id)
    assert (ended.state, ended.result, ended.error) == (JobState.CANCELLED, None, None)
    assert done(host, store, EVALUATION).state is JobState.SUCCEEDED


def test_reading_job_of_a_stopping_worker_goes_back_and_starts_again(
    host: TextHost, store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(host, monkeypatch)
    record = store.create("aleph_alpha", EXPLANATION)
    runner = threading.Thread(target=host.run_next_job)
    runner.start()
    assert held.has_begun.wait(60)

    stopper = threading.Thread(target=host.stop)
    stopper.start()
    while not host._text_engine._is_stopping:
        time.sleep(0.001)
    held.may_go_on.set()
    runner.join(60)
    stopper.join(60)

    again = store.get(record.id)
    assert (again.state, again.attempt, again.result) == (JobState.QUEUED, 1, None)
