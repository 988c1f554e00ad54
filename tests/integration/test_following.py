"""The events of jobs, told one after the other until all have ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from test_job_records import RESULT, attempts, claimed, news, text_job

from api import outage, stopping
from api.bell import Bell
from api.following import follow
from api.waiting import wait_for_end
from workers.contract import keys
from workers.contract.errors import JobNotFound
from workers.contract.job_record import JobEvent, JobState
from workers.contract.redis_client import Client
from workers.contract.store import FIRST_EVENT, JobStore

pytestmark = pytest.mark.redis

Told = Iterator[tuple[str, JobEvent] | None]


class Reader:
    """Somebody who can leave."""

    def __init__(self) -> None:
        self.is_there = True

    def is_open(self) -> bool:
        return self.is_there


@pytest.fixture
def bell(client: Client) -> Bell:
    return Bell(client)


def following(bell: Bell, store: JobStore, after: dict[str, str], reader: Reader) -> Told:
    # Stands in for a `Connection`, which would want a socket.
    return follow(bell, store, after, reader)  # type: ignore[arg-type]


def kinds(told: Told) -> list[tuple[str, str]]:
    """Everything that is told to the end: job and what happened to it."""
    return [(each[0], each[1].state or each[1].kind) for each in told if each is not None]


def test_events_of_several_jobs_are_told_until_all_have_ended(
    client: Client, store: JobStore, bell: Bell
) -> None:
    first, second = (store.create("neodim", text_job()).id for _ in range(2))
    worker = attempts(client)
    told = following(bell, store, {first: FIRST_EVENT, second: FIRST_EVENT}, Reader())
    begun = {each[0] for each in (next(told), next(told)) if each is not None}

    one = claimed(worker)
    worker.publish([news(one, 1, "a", 1)])
    worker.succeed(one, RESULT)
    store.cancel(second)
    heard = kinds(told)

    assert begun == {first, second}
    assert [kind for job_id, kind in heard if job_id == first] == ["running", "delta", "succeeded"]
    assert [kind for job_id, kind in heard if job_id == second] == ["cancelled"]


def test_what_happens_is_told_as_it_happens(client: Client, store: JobStore, bell: Bell) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    attempt = claimed(worker)
    told = following(bell, store, {job_id: FIRST_EVENT}, Reader())
    while next(told) is not None:
        pass
    waits: list[float] = []

    for batch in range(5):
        worker.publish([news(attempt, batch + 1, "a", batch)])
        started = time.monotonic()
        while (event := next(told)) is None:
            pass
        waits.append(time.monotonic() - started)
        assert event[1].tokens == (batch,)

    assert min(waits) < 0.5


def test_reader_who_has_the_last_event_is_told_nothing_and_not_kept(
    client: Client, store: JobStore, bell: Bell
) -> None:
    job_id = store.create("neodim", text_job()).id
    store.cancel(job_id)
    last = store.events({job_id: FIRST_EVENT})[-1][1].id
    started = time.monotonic()

    heard = kinds(following(bell, store, {job_id: last}, Reader()))

    assert heard == []
    assert time.monotonic() - started < 5


def test_reader_goes_on_after_the_event_that_it_has(
    client: Client, store: JobStore, bell: Bell
) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    attempt = claimed(worker)
    worker.publish([news(attempt, 1, "a", 1)])
    middle = store.events({job_id: FIRST_EVENT})[-1][1].id
    worker.succeed(attempt, RESULT)

    heard = kinds(following(bell, store, {job_id: middle}, Reader()))

    assert heard == [(job_id, "succeeded")]


def test_job_that_is_removed_meanwhile_is_not_found(
    client: Client, store: JobStore, bell: Bell
) -> None:
    job_id = store.create("neodim", text_job()).id
    told = following(bell, store, {job_id: FIRST_EVENT}, Reader())
    next(told)

    client.delete(keys.job(job_id), keys.events(job_id))

    with pytest.raises(JobNotFound):
        list(told)


def test_reader_who_leaves_is_told_no_more(store: JobStore, bell: Bell) -> None:
    job_id = store.create("neodim", text_job()).id
    reader = Reader()
    told = following(bell, store, {job_id: FIRST_EVENT}, reader)
    next(told)

    reader.is_there = False

    assert list(told) == []
    assert bell._waiters == {}


def test_nothing_more_is_told_when_the_process_stops(
    store: JobStore, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = store.create("neodim", text_job()).id
    told = following(bell, store, {job_id: FIRST_EVENT}, Reader())
    next(told)

    monkeypatch.setattr(stopping, "is_begun", lambda: True)

    assert list(told) == []


def test_silence_is_told_too(store: JobStore, bell: Bell) -> None:
    job_id = store.create("neodim", text_job()).id
    told = following(bell, store, {job_id: FIRST_EVENT}, Reader())

    heard = [next(told) for _ in range(3)]

    assert heard[0] is not None
    assert heard[1:] == [None, None]


class Absent:
    """A store that cannot be asked at first."""

    def __init__(self, store: JobStore, n_failures: int) -> None:
        self._store = store
        self.n_failures = n_failures

    def _fail(self) -> None:
        if self.n_failures:
            self.n_failures -= 1
            raise redis.ConnectionError("away")

    def events(self, after: dict[str, str]) -> object:
        self._fail()
        return self._store.events(after)

    def get(self, job_id: str) -> object:
        self._fail()
        return self._store.get(job_id)


def test_a_short_absence_of_redis_is_borne_by_those_who_follow_and_wait(
    client: Client, store: JobStore, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outage, "RETRY_S", 0.01)
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    worker.succeed(claimed(worker), RESULT)

    absent: Any = Absent(store, 3)
    told = kinds(following(bell, absent, {job_id: FIRST_EVENT}, Reader()))
    absent.n_failures = 3
    reader: Any = Reader()
    ended = wait_for_end(bell, absent, job_id, reader)

    assert [kind for _, kind in told] == ["queued", "running", "succeeded"]
    assert ended.state is JobState.SUCCEEDED


def test_a_long_absence_of_redis_is_an_error(
    store: JobStore, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outage, "RETRY_S", 0.001)
    monkeypatch.setattr(outage, "PATIENCE_S", 0.01)
    job_id = store.create("neodim", text_job()).id
    absent: Any = Absent(store, 10**9)

    with pytest.raises(redis.ConnectionError):
        kinds(following(bell, absent, {job_id: FIRST_EVENT}, Reader()))
