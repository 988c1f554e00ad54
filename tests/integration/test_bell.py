"""Who waits for news of a job is woken by it, and all who wait need one connection."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from itertools import count

import pytest
from test_job_records import RESULT, attempts, claimed, news, text_job

from api.bell import Bell
from workers.contract.redis_client import Client, connect
from workers.contract.store import JobStore

pytestmark = pytest.mark.redis

SOON_S = 10
"""Long enough for a busy machine: news comes at once."""
NEVER_S = 0.3
NAME = "bell"
NUMBERS = count(1000)


@pytest.fixture
def bell(redis_url: str) -> Bell:
    """One whose connections are told from those of other tests' bells by a name."""
    return Bell(connect(f"{redis_url}?client_name={NAME}-{next(NUMBERS)}"))


def listeners(client: Client) -> int:
    """Connections of the newest bell that listen for news."""
    newest = max(each["name"] for each in client.client_list() if each["name"].startswith(NAME))
    return sum(each["name"] == newest for each in client.client_list())


def test_every_waiter_of_a_job_hears_its_news_and_no_other_does(
    client: Client, store: JobStore, bell: Bell
) -> None:
    job_id, other = (store.create("neodim", text_job()).id for _ in range(2))
    worker = attempts(client)
    with (
        bell.waiter(job_id, wants_end=False) as first,
        bell.waiter(job_id, wants_end=False) as second,
        bell.waiter(other, wants_end=False) as third,
    ):
        for each in (first, second, third):
            each.wait(NEVER_S)

        worker.publish([news(claimed(worker), 1, "a", 1)])

        heard = [first.wait(SOON_S), second.wait(SOON_S)]
        assert not third.wait(NEVER_S)
    assert heard == [True, True]


def test_one_who_waits_for_the_end_hears_nothing_else(
    client: Client, store: JobStore, bell: Bell
) -> None:
    job_id = store.create("neodim", text_job()).id
    worker = attempts(client)
    with bell.waiter(job_id, wants_end=True) as waiter:
        waiter.wait(NEVER_S)
        attempt = claimed(worker)
        worker.publish([news(attempt, 1, "a", 1)])
        before = waiter.wait(NEVER_S)

        worker.succeed(attempt, RESULT)

        assert (before, waiter.wait(SOON_S)) == (False, True)


def test_one_waiter_hears_of_all_its_jobs(client: Client, store: JobStore, bell: Bell) -> None:
    ids = [store.create("neodim", text_job()).id for _ in range(3)]
    heard = []
    with bell.waiter(*ids, wants_end=True) as waiter:
        waiter.wait(NEVER_S)
        for job_id in ids:
            store.cancel(job_id)
            heard.append(waiter.wait(SOON_S))

    assert heard == [True] * 3


def test_news_between_two_waits_is_not_missed(client: Client, store: JobStore, bell: Bell) -> None:
    job_id = store.create("neodim", text_job()).id
    with bell.waiter(job_id, wants_end=True) as waiter:
        waiter.wait(NEVER_S)
        store.cancel(job_id)
        time.sleep(NEVER_S)

        assert waiter.wait(0)
        assert not waiter.wait(0)


def test_hundred_waiters_need_one_connection(client: Client, store: JobStore, bell: Bell) -> None:
    ids = [store.create("neodim", text_job()).id for _ in range(100)]
    with ExitStack() as stack:
        waiters = [stack.enter_context(bell.waiter(each, wants_end=True)) for each in ids]
        n_listeners = listeners(client)
        for job_id in ids:
            store.cancel(job_id)
        heard = [waiter.wait(SOON_S) for waiter in waiters]

    assert n_listeners == 1
    assert heard == [True] * 100


def test_everybody_looks_again_when_a_lost_connection_is_back(
    client: Client, store: JobStore, bell: Bell
) -> None:
    job_id, other = (store.create("neodim", text_job()).id for _ in range(2))
    with (
        bell.waiter(job_id, wants_end=True) as waiter,
        bell.waiter(other, wants_end=False) as second,
    ):
        for each in (waiter, second):
            each.wait(NEVER_S)

        client.client_kill_filter(_type="pubsub")
        # Nobody listens now, so that this is not heard.
        store.cancel(job_id)

        assert waiter.wait(SOON_S)
        assert second.wait(SOON_S)
        store.cancel(other)
        assert second.wait(SOON_S)


def test_bell_goes_on_with_a_next_connection_however_often_one_is_lost(
    client: Client, store: JobStore, bell: Bell
) -> None:
    heard = []
    for _ in range(3):
        job_id = store.create("neodim", text_job()).id
        with bell.waiter(job_id, wants_end=True) as waiter:
            waiter.wait(NEVER_S)
            client.client_kill_filter(_type="pubsub")
            heard.append(waiter.wait(SOON_S))
            store.cancel(job_id)
            heard.append(waiter.wait(SOON_S))

    assert heard == [True] * 6


def test_nobody_is_remembered_who_waits_no_more(store: JobStore, bell: Bell) -> None:
    job_id = store.create("neodim", text_job()).id

    with bell.waiter(job_id, "other", wants_end=True), bell.waiter(job_id, wants_end=False):
        n_jobs = len(bell._waiters)

    assert (n_jobs, bell._waiters) == (2, {})


def test_many_may_come_and_go_while_news_comes(client: Client, store: JobStore, bell: Bell) -> None:
    ids = [store.create("neodim", text_job()).id for _ in range(20)]
    missed: list[str] = []

    def wait_for(job_id: str) -> None:
        with bell.waiter(job_id, wants_end=True) as waiter:
            if not store.get(job_id).state.is_ended and not waiter.wait(SOON_S):
                missed.append(job_id)

    threads = [threading.Thread(target=wait_for, args=(each,)) for each in ids * 3]
    for thread in threads:
        thread.start()
    for job_id in ids:
        store.cancel(job_id)
    for thread in threads:
        thread.join()

    assert missed == []
