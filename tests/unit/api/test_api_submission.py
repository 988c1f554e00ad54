from __future__ import annotations

from dataclasses import replace

import pytest

from api.neodim.routes import NEODIM
from api.standard.adapter import chat_job, completion_jobs, read_chat, read_completion
from api.standard.routes import COMPLETION
from api.submission import Submission
from neodim_sampling.prompt_items import ImageItem, ItemsPrompt
from workers.contract.errors import (
    InvalidParams,
    MissingCapability,
    ModelLoading,
    QueueUnavailable,
    UnknownModel,
)
from workers.contract.fleet import WorkerCard, WorkerKind, WorkerState
from workers.contract.reading_job import EmbeddingJob, EvaluationJob, Pooling
from workers.contract.settings import Settings
from workers.contract.text_job import TextJob

SETTINGS = Settings(model_name="tiny", slots=4, max_length=100, model_wait_s=0)
BODY = {"prompt": "x", "generated_tokens_count": 4, "max_total_tokens": 64}


class FleetOf:
    """A fleet whose workers are given."""

    def __init__(self, *cards):
        self._cards = cards

    def models(self):
        return {"tiny": WorkerKind.TEXT}

    def ready(self, model):
        return list(self._cards)


class RecordingStore:
    """Takes jobs and remembers them."""

    def __init__(self):
        self.jobs = []

    def create(self, protocol, job, owner):
        self.jobs.append((protocol, job, owner))
        return type("Record", (), {"id": str(len(self.jobs))})


def card(slots, max_length):
    return WorkerCard(
        name="w",
        model="tiny",
        state=WorkerState.READY,
        slots=slots,
        max_length=max_length,
        host="nowhere",
        pid=1,
        started_ms=0,
    )


def submit(fleet, store=None, send=lambda model: None, needs_worker=True, **fields):
    submission = Submission(store or RecordingStore(), fleet, send, SETTINGS)
    return submission.submit(NEODIM, {**BODY, **fields}, "me", needs_worker=needs_worker)


def test_a_job_is_written_before_its_ticket_is_sent():
    store = RecordingStore()
    seen = []

    submit(FleetOf(card(4, 100)), store, lambda model: seen.append((model, len(store.jobs))))

    assert seen == [("tiny", 1)]
    assert [(protocol, owner) for protocol, _, owner in store.jobs] == [("neodim", "me")]


def test_a_job_whose_ticket_is_lost_stays():
    store = RecordingStore()

    def fail(model):
        raise QueueUnavailable("the broker is away")

    assert submit(FleetOf(card(4, 100)), store, fail).id == "1"


def test_without_a_ready_worker_only_those_who_wait_are_refused():
    store = RecordingStore()

    with pytest.raises(ModelLoading):
        submit(FleetOf(), store)
    submit(FleetOf(), store, needs_worker=False)

    assert len(store.jobs) == 1


def test_what_fits_the_largest_worker_is_taken():
    fleet = FleetOf(card(2, 50), card(8, 20))

    assert submit(fleet, sequences_count=8, generated_tokens_count=49)


@pytest.mark.parametrize(
    ("fleet", "fields", "message"),
    [
        (FleetOf(card(2, 50)), {"sequences_count": 3}, "sequences_count: must be at most 2"),
        (FleetOf(card(2, 50)), {"generated_tokens_count": 50}, "generated_tokens_count: .* 49"),
        (FleetOf(), {"sequences_count": 5}, "sequences_count: must be at most 4"),
        (FleetOf(), {"generated_tokens_count": 100}, "generated_tokens_count: .* 99"),
    ],
)
def test_what_fits_no_worker_is_refused(fleet, fields, message):
    with pytest.raises(InvalidParams, match=message):
        submit(fleet, needs_worker=False, **fields)


def admit(*jobs, store=None, fleet=None):
    submission = Submission(
        store or RecordingStore(), fleet or FleetOf(card(4, 100)), lambda model: None, SETTINGS
    )
    return submission.admit(COMPLETION, jobs, "me", needs_worker=True)


def jobs_of(*prompts, model="tiny", **fields):
    body = {"model": model, "prompt": list(prompts), **fields}
    return completion_jobs(read_completion(body))


def test_jobs_of_one_request_are_put_in_line_in_their_order():
    store = RecordingStore()

    records = admit(*jobs_of("a", "b"), store=store)

    assert [record.id for record in records] == ["1", "2"]
    assert [(name, job.prompt.text) for name, job, _ in store.jobs] == [
        ("completion", "a"),
        ("completion", "b"),
    ]


def test_none_is_put_in_line_when_one_does_not_fit():
    store = RecordingStore()
    good, bad = jobs_of("a"), jobs_of("b", max_tokens=100)

    with pytest.raises(InvalidParams, match=r"^max_tokens: must be at most 99"):
        admit(*good, *bad, store=store)

    assert store.jobs == []


@pytest.mark.parametrize("fields", [{"n": 5}, {"best_of": 5}])
def test_texts_that_need_not_wait_for_each_other_may_be_more_than_a_worker_makes_at_once(fields):
    assert [record.id for record in admit(*jobs_of("a", **fields))] == ["1"]


def test_an_unknown_model_is_refused_with_the_names_of_the_known_ones():
    with pytest.raises(UnknownModel, match=r"^model: 'large' is not served here; known: tiny$"):
        admit(*jobs_of("a", model="large"))


def test_a_model_for_other_requests_is_refused_with_where_it_is_asked():
    settings = replace(SETTINGS, image_model_name="painter")
    submission = Submission(RecordingStore(), FleetOf(), lambda model: None, settings)

    with pytest.raises(UnknownModel) as caught:
        submission.admit(COMPLETION, jobs_of("a", model="painter"), "", needs_worker=False)

    assert caught.value.field == "model"
    assert caught.value.problem == (
        "'painter' is for /v1/images/generations; for such requests as this, known: tiny"
    )


def test_a_text_without_a_length_fits_whatever_a_worker_has():
    body = {"model": "tiny", "messages": [{"role": "user", "content": "x"}]}
    (record,) = admit(chat_job(read_chat(body)))

    assert record.id == "1"


def looking_jobs():
    prompt = ItemsPrompt(items=(ImageItem(picture=b"x"),))
    return [
        TextJob(model="tiny", prompt=prompt, max_new_tokens=4, seed=1),
        EvaluationJob(model="tiny", prompt=prompt, expected="y"),
        EmbeddingJob(
            model="tiny",
            prompts=(ItemsPrompt(items=()), prompt),
            layers=(0,),
            pooling=(Pooling.MEAN,),
        ),
    ]


@pytest.mark.parametrize("job", looking_jobs())
def test_pictures_for_a_model_that_reads_none_are_refused_at_once(job):
    store = RecordingStore()

    with pytest.raises(MissingCapability, match=r"^prompt: the model tiny does not read pictures"):
        admit(job, store=store)

    assert store.jobs == []


@pytest.mark.parametrize("job", looking_jobs())
def test_pictures_for_a_model_that_reads_them_are_taken(job):
    seeing = replace(card(4, 100), reads_pictures=True)

    assert len(admit(job, fleet=FleetOf(card(4, 100), seeing))) == 1
