"""Waits for the end of a job, for as long as there is a client to wait for it."""

from __future__ import annotations

import time
from functools import partial

from api import stopping
from api.bell import Bell
from api.connection import Connection
from api.outage import patiently
from api.rejections import ClientGone, ServiceStopping
from workers.contract.job_record import JobRecord
from workers.contract.store import JobStore

SLICE_S = 0.5
"""How long a client's leaving can go unnoticed."""

RECHECK_S = 5.0
"""How long a job's end can go unnoticed when the news of it got lost."""


def wait_for_end(
    bell: Bell,
    store: JobStore,
    job_id: str,
    connection: Connection,
    timeout_s: float | None = None,
) -> JobRecord:
    """The job when it has ended, or as it is after so many seconds or when the process stops.

    Args:
        bell: rings when the job ends.
        store: has the job.
        job_id: which one.
        connection: the client's.
        timeout_s: longest wait, None = until the job ends.

    Raises:
        ClientGone: nobody waits any more.
        ServiceStopping: the process stops, and the wait was for the end alone.
        JobNotFound: the job is not there any more.
    """
    look = partial(store.get, job_id)
    started = checked = time.monotonic()
    with bell.waiter(job_id, wants_end=True) as waiter:
        record = patiently(look)
        while not record.state.is_ended:
            left_s = SLICE_S if timeout_s is None else started + timeout_s - time.monotonic()
            has_rung = waiter.wait(max(0.0, min(left_s, SLICE_S)))
            is_stopping = stopping.is_begun()
            if has_rung or is_stopping or left_s <= 0 or time.monotonic() > checked + RECHECK_S:
                record, checked = patiently(look), time.monotonic()
            if record.state.is_ended or left_s <= 0:
                break
            if is_stopping:
                if timeout_s is None:
                    raise ServiceStopping(job_id)
                break
            if not connection.is_open():
                raise ClientGone("the client closed its connection")
    return record
