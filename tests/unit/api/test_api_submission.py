from __future__ import annotations

import pytest

from api.neodim.routes import NEODIM
from api.submission import Submission
from workers.contract.errors import InvalidParams, ModelLoading, QueueUnavailable
from workers.contract.fleet import WorkerCard, WorkerKind, WorkerState
from workers.contract.settings import Settings

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
