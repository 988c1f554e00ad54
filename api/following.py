"""Follows what happens to jobs, for as long as there is somebody to tell it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from api import stopping
from api.bell import Bell
from api.connection import Connection
from api.outage import patiently
from workers.contract.job_record import JobEvent
from workers.contract.store import JobStore

PING_S = 15.0
"""Longest silence in a stream that tells what happens."""

SLICE_S = 1.0
"""How long a reader's leaving can go unnoticed."""


def follow(
    bell: Bell, store: JobStore, after: Mapping[str, str], connection: Connection
) -> Iterator[tuple[str, JobEvent] | None]:
    """The events of jobs after one of each, until all have ended.

    Ends earlier when the client leaves or the process stops.

    Args:
        bell: rings when there is news.
        store: has the jobs.
        after: by job id, the last event known; `FIRST_EVENT` = none.
        connection: the client's.

    Yields:
        Job id and event; None whenever nothing happened for a while.

    Raises:
        JobNotFound: a job is not there any more.
        redis.RedisError: Redis does not answer.
    """
    places = dict(after)
    ended: set[str] = set()
    is_first_look = True
    with bell.waiter(*places, wants_end=False) as waiter:
        while places:
            found = patiently(partial(store.events, places))
            for job_id, event in found:
                places[job_id] = event.id
                yield job_id, event
                if event.is_last:
                    del places[job_id]
            if not places or stopping.is_begun() or not connection.is_open():
                return
            is_closing = is_first_look or not ended.isdisjoint(places)
            if found or (not is_closing and waiter.wait(SLICE_S)):
                continue
            is_first_look = False
            # A job's end is written together with its event: one more look after it finds that.
            for job_id in ended & places.keys():
                del places[job_id]
            ended |= {
                job_id for job_id in places if patiently(partial(store.get, job_id)).state.is_ended
            }
            yield None
