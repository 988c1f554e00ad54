"""The publisher against a real Redis: everything is written once, and nothing too late."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

import pytest
import redis
from test_job_records import LATE, MODEL, RESULT, attempts, claimed, text_job

from workers.contract.attempts import AttemptStore
from workers.contract.errors import LeaseLost
from workers.contract.job_record import JobState
from workers.contract.redis_client import Client
from workers.contract.store import FIRST_EVENT, JobStore
from workers.contract.text_result import Alternative, TextDelta, TokenScore
from workers.publisher import STUCK_S, Output, Publisher

pytestmark = pytest.mark.redis


def delta(text: str, *tokens: int, sequence: int = 0) -> TextDelta:
    return TextDelta(sequence=sequence, text=text, tokens=tokens)


def texts(store: JobStore, job_id: str) -> list[str]:
    events = [event for _, event in store.events({job_id: FIRST_EVENT})]
    return [event.text for event in events if event.kind == "delta"]


def until_seen(store: JobStore, job_id: str, expected: list[str]) -> None:
    for _ in range(600):
        if texts(store, job_id) == expected:
            return
        time.sleep(0.01)
    raise AssertionError(texts(store, job_id))


class FailingStore:
    """An attempt store whose answers get lost for a while, after or before Redis wrote."""

    def __init__(self, store: AttemptStore, failures: Sequence[str]) -> None:
        self._store = store
        self._failures = list(failures)

    def publish(self, news: list) -> list[str]:
        failure = self._failures.pop(0) if self._failures else ""
        if failure == "before":
            raise redis.ConnectionError("refused")
        replies = self._store.publish(news)
        if failure == "after":
            raise redis.TimeoutError("no answer")
        return replies


def test_running_job_is_published_until_it_is_closed(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    publisher = Publisher(worker, time.monotonic)
    publisher.start()
    attempt = claimed(worker)
    output = publisher.open(attempt)

    output.add([delta("a", 1)], 1)
    until_seen(store, job_id, ["a"])
    output.add([delta("b", 2)], 2)
    output.add([delta("c", 3)], 3)
    publisher.close(output, lambda: worker.succeed(attempt, RESULT))
    publisher.stop()

    assert "".join(texts(store, job_id)) == "abc"
    assert store.get(job_id).state is JobState.SUCCEEDED
    assert store.get(job_id).n_generated == 3


@pytest.mark.parametrize("failures", [["before"], ["after"], ["after", "before", "after"]])
def test_write_whose_answer_was_lost_is_made_once(
    client: Client, store: JobStore, failures: list[str]
) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    publisher = Publisher(FailingStore(worker, failures), time.monotonic)
    attempt = claimed(worker)
    output = publisher.open(attempt)
    publisher.start()

    output.add([delta("a", 1, 2), delta("x", 9, sequence=1)], 3)
    until_seen(store, job_id, ["a", "x"])
    output.add([delta("b", 3)], 4)
    publisher.close(output, lambda: worker.succeed(attempt, RESULT))
    publisher.stop()

    assert texts(store, job_id) == ["a", "x", "b"]
    made = worker.made_so_far(attempt)
    assert {index: each.tokens for index, each in made.items()} == {0: (1, 2, 3), 1: (9,)}


def test_parts_and_scores_of_a_text_survive_the_way_through_redis(
    client: Client, store: JobStore
) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    attempt = claimed(worker)
    output = Output(attempt)
    scores = [
        TokenScore(1, "a", None),
        TokenScore(2, "\u4f60", -0.125, (Alternative(3, "\ufffd", -2.5), Alternative(2, '"', -3))),
        TokenScore(4, "", -9999.0),
    ]
    parts = [("a", 1), ("\u4f60\u597d", 2), ("", 4)]

    for (text, token), score in zip(parts, scores, strict=True):
        output.add([dataclasses.replace(delta(text, token), scores=(score,))], token)
    worker.publish([output.take()])

    event = store.events({job_id: FIRST_EVENT})[-1][1]
    assert list(event.parts) == ["a", "\u4f60\u597d"]
    assert list(event.scores) == scores
    assert worker.made_so_far(attempt)[0].scores == tuple(scores)


def test_text_that_came_in_one_part_needs_no_cuts(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    output = Output(claimed(worker))

    output.add([delta("", 1)], 1)
    output.add([delta("ab", 2)], 2)
    worker.publish([output.take()])

    event = store.events({job_id: FIRST_EVENT})[-1][1]
    assert (event.cuts, list(event.parts), event.scores) == ((), ["ab"], ())


def test_next_attempt_goes_on_with_what_all_before_it_made(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    for token in (1, 2):
        attempt = claimed(worker)
        output = Output(attempt)
        score = TokenScore(token, "x", -float(token))
        output.add([dataclasses.replace(delta("x", token), scores=(score,))], token)
        worker.publish([output.take()])
        worker.hand_back(attempt)

    made = worker.made_so_far(claimed(worker))[0]

    assert (made.text, made.tokens) == ("xx", (1, 2))
    assert [each.log_prob for each in made.scores] == [-1.0, -2.0]
    assert texts(store, job_id) == ["x", "x"]


def test_cancelled_job_is_told_to_its_generation(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    publisher = Publisher(worker, time.monotonic)
    output = publisher.open(claimed(worker))
    cancelled: list[bool] = []
    output.connect(lambda: cancelled.append(True))
    publisher.start()

    store.cancel(job_id)
    for _ in range(600):
        if cancelled:
            break
        time.sleep(0.01)
    publisher.stop()

    assert cancelled


def test_lost_job_is_neither_published_nor_finished(client: Client, store: JobStore) -> None:
    job_id = store.create("neodim", text_job()).id
    lost = attempts(client, "lost", lease_s=0)
    publisher = Publisher(lost, time.monotonic)
    attempt = claimed(lost)
    output = publisher.open(attempt)
    time.sleep(0.01)
    other = attempts(client, "other")
    other.sweep()
    assert other.claim(MODEL) is not None

    output.add([delta("late", 1)], 1)
    with pytest.raises(LeaseLost):
        publisher.close(output, lambda: lost.succeed(attempt, LATE))

    assert texts(store, job_id) == []
    assert store.get(job_id).state is JobState.RUNNING


def test_leases_of_a_stuck_engine_are_let_go(client: Client, store: JobStore) -> None:
    store.create("neodim", text_job())
    worker = attempts(client)
    turned_at = time.monotonic() - 2 * STUCK_S
    publisher = Publisher(worker, lambda: turned_at)
    attempt = claimed(worker)
    output = publisher.open(attempt)
    output.add([delta("a", 1)], 1)
    publisher.start()

    time.sleep(0.3)
    publisher.stop()

    assert texts(store, attempt.job_id) == []


def test_output_waits_for_the_end_and_keeps_its_error(client: Client, store: JobStore) -> None:
    store.create("neodim", text_job())
    output = Output(claimed(attempts(client)))
    error = ValueError("why")

    output.end(error)
    output.wait()

    assert output.error is error
