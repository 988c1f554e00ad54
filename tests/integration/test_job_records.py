"""Job records in a real Redis: one truth a job, and only its current attempt may write."""

from __future__ import annotations

import time

import pytest
from scripted_worker import result_of

from neodim_sampling.prompts import PreamblePrompt
from workers.contract import keys
from workers.contract.attempts import Attempt, AttemptStore, Progress
from workers.contract.errors import JobNotFound, LeaseLost
from workers.contract.job_record import COMPRESSED_FROM_BYTES, JobState
from workers.contract.news import News, listen
from workers.contract.redis_client import Client
from workers.contract.store import FIRST_EVENT, JobStore
from workers.contract.text_job import TextJob
from workers.contract.text_result import TextDelta, TokenScore

pytestmark = pytest.mark.redis

MODEL = "m"
MAX_ATTEMPTS = 3


def attempts(client: Client, worker: str = "w", lease_s: int = 60) -> AttemptStore:
    return AttemptStore(
        client, worker=worker, lease_s=lease_s, result_ttl_s=100, max_attempts=MAX_ATTEMPTS
    )


def text_job(text: str = "Hi") -> TextJob:
    prompt = PreamblePrompt(preamble="", text=text, max_total_tokens=20)
    return TextJob(model=MODEL, prompt=prompt, max_new_tokens=4, seed=5)


RESULT = result_of(text_job(), 1)
LATE = result_of(text_job(), 2)
PARTIAL = result_of(text_job(), 1, is_partial=True)


def news(attempt: Attempt, batch: int, text: str, *tokens: int) -> Progress:
    delta = TextDelta(sequence=0, text=text, tokens=tokens)
    return Progress(attempt=attempt, batch=batch, n_generated=len(tokens), deltas=(delta,))


def claimed(worker: AttemptStore) -> Attempt:
    attempt = worker.claim(MODEL)
    assert attempt is not None
    return attempt


def kinds(store: JobStore, job_id: str) -> list[str]:
    return [event.state or event.kind for _, event in store.events({job_id: FIRST_EVENT})]


def test_job_survives_the_way_through_redis_whatever_its_size(
    client: Client, store: JobStore
) -> None:
    job = text_job("word " * COMPRESSED_FROM_BYTES)

    record = store.create("neodim", job, owner="me")
    attempt = claimed(attempts(client))

    assert record.state is JobState.QUEUED
    assert (record.owner, record.n_expected) == ("me", 4)
    assert attempt.job() == job


def test_jobs_are_claimed_in_order_of_arrival(client: Client, store: JobStore) -> None:
    ids = [store.create("neodim", text_job()).id for _ in range(5)]

    worker = attempts(client)

    assert [claimed(worker).job_id for _ in ids] == ids
    assert worker.claim(MODEL) is None


def test_finished_job_has_result_last_event_and_an_end_of_life(
    client: Client, store: JobStore
) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    attempt = claimed(worker)

    worker.publish([news(attempt, 1, "!", 1)])
    worker.succeed(attempt, RESULT)

    record = store.get(job_id)
    assert record.state is JobState.SUCCEEDED
    assert record.result == RESULT
    assert record.created_ms <= (record.started_ms or 0) <= (record.finished_ms or 0)
    assert kinds(store, job_id) == ["queued", "running", "delta", "succeeded"]
    lives = [client.ttl(key(job_id)) for key in (keys.job, keys.events)]
    assert all(0 < life <= 100 for life in lives)
    assert client.exists(keys.LEASES, keys.waiting(MODEL)) == 0


def test_batch_sent_twice_is_written_once(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    attempt = claimed(worker)

    for _ in range(2):
        worker.publish([news(attempt, 1, "ab", 1, 2)])
    worker.publish([news(attempt, 2, "c", 3)])

    assert kinds(store, job_id).count("delta") == 2
    assert worker.made_so_far(attempt)[0].tokens == (1, 2, 3)


def test_an_echo_that_was_told_is_known_to_the_next_attempt(
    client: Client, store: JobStore
) -> None:
    store.create("neodim", text_job())
    worker = attempts(client)
    attempt = claimed(worker)
    echo = (TokenScore(5, "Hi", None), TokenScore(6, " there", -0.5))
    delta = TextDelta(sequence=0, text="", tokens=(), echo=echo)

    worker.publish([Progress(attempt=attempt, batch=1, n_generated=0, deltas=(delta,))])

    assert worker.made_so_far(attempt)[0].echo == echo


def test_everything_that_grows_a_jobs_stream_behind_its_creation_is_news(
    client: Client, store: JobStore
) -> None:
    news_of = listen(client)
    first = next(news_of)
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)

    worker.hand_back(claimed(worker))
    attempt = claimed(worker)
    worker.publish([news(attempt, 1, "a", 1)])
    worker.succeed(attempt, RESULT)

    assert first is None
    heard = [next(news_of) for _ in range(5)]
    assert heard == [News(job_id, is_end=n == 4) for n in range(5)]


def test_new_job_is_returned_as_it_is_written(store: JobStore) -> None:
    record = store.create("neodim", text_job(), "somebody")

    assert store.get(record.id) == record


def test_cancel_ends_a_waiting_job_at_once(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id

    record = store.cancel(job_id)

    assert record.state is JobState.CANCELLED
    assert attempts(client).claim(MODEL) is None
    assert kinds(store, job_id) == ["queued", "cancelled"]


def test_cancel_reaches_the_worker_and_keeps_the_text(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    attempt = claimed(worker)

    store.cancel(job_id)
    replies = worker.publish([news(attempt, 1, "!", 1)])
    worker.succeed(attempt, PARTIAL)

    assert replies == ["1"]
    assert store.get(job_id).state is JobState.CANCELLED
    assert store.get(job_id).result == PARTIAL


def test_cancel_changes_nothing_of_an_ended_job(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    worker.succeed(claimed(worker), RESULT)

    assert store.cancel(job_id).state is JobState.SUCCEEDED


def test_unknown_job_is_not_found_by_any_call(store: JobStore) -> None:
    for call in (store.get, store.cancel):
        with pytest.raises(JobNotFound):
            call("no-such-job")


def test_lapsed_lease_puts_the_job_back_at_its_old_place(client: Client, store: JobStore) -> None:
    first = store.create("neodim", text_job()).id
    lost = attempts(client, "lost", lease_s=0)
    attempt = claimed(lost)
    lost.publish([news(attempt, 1, "ab", 1, 2)])
    store.create("neodim", text_job())
    time.sleep(0.01)

    models = attempts(client, "other").sweep()

    again = claimed(attempts(client, "other"))
    assert models == [MODEL]
    assert (again.job_id, again.number) == (first, 2)
    assert attempts(client).made_so_far(again)[0].tokens == (1, 2)


def test_lost_worker_can_write_nothing_more(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    lost = attempts(client, "lost", lease_s=0)
    old = claimed(lost)
    time.sleep(0.01)
    other = attempts(client, "other")
    other.sweep()
    new = claimed(other)

    replies = lost.publish([news(old, 1, "late", 9)])
    with pytest.raises(LeaseLost):
        lost.succeed(old, LATE)
    with pytest.raises(LeaseLost):
        lost.fail(old, "engine_failure", "late")
    lost.hand_back(old)
    other.succeed(new, RESULT)

    assert replies == ["lost"]
    assert store.get(job_id).result == RESULT
    assert kinds(store, job_id) == ["queued", "running", "queued", "running", "succeeded"]


def test_job_that_loses_too_many_workers_fails_and_says_so(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client, lease_s=0)

    for _ in range(MAX_ATTEMPTS):
        claimed(worker)
        time.sleep(0.01)
        worker.sweep()

    record = store.get(job_id)
    assert record.state is JobState.FAILED
    assert record.error is not None
    assert record.error[0] == "worker_lost"
    assert worker.claim(MODEL) is None


def test_job_handed_back_counts_no_loss(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)

    for _ in range(MAX_ATTEMPTS + 2):
        worker.hand_back(claimed(worker))

    assert store.get(job_id).state is JobState.QUEUED
    assert store.get(job_id).attempt == MAX_ATTEMPTS + 2


def test_job_cancelled_between_two_attempts_is_ended_by_the_next_worker(
    client: Client, store: JobStore
) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    worker.hand_back(claimed(worker))

    state = store.cancel(job_id).state
    attempt = claimed(worker)

    assert state is JobState.QUEUED
    assert attempt.is_cancelled


def test_events_of_several_jobs_go_on_after_any_of_them(client: Client, store: JobStore) -> None:
    job_id, other = (store.create("neodim", text_job()).id for _ in range(2))
    worker = attempts(client)
    attempt = claimed(worker)
    seen = store.events({job_id: FIRST_EVENT})
    last = seen[-1][1].id

    none = store.events({job_id: last})
    worker.publish([news(attempt, 1, "a\u00fc", 1)])
    new = dict(store.events({job_id: last, other: FIRST_EVENT}))

    assert [event.state for _, event in seen] == ["queued", "running"]
    assert list(none) == []
    assert new[other].state == "queued"
    assert (new[job_id].kind, new[job_id].text, new[job_id].tokens) == ("delta", "a\u00fc", (1,))
    assert not new[job_id].is_last
