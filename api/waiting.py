"""Waits for the end of a job, for as long as there is a client to wait for it."""

from __future__ import annotations

import time

from api import stopping
from api.connection import Connection
from api.rejections import ClientGone, ServiceStopping
from workers.contract.job_record import JobRecord
from workers.contract.store import JobStore

SLICE_S = 0.5
"""How long a client's leaving can go unnoticed."""


def wait_for_end(
    store: JobStore, job_id: str, connection: Connection, timeout_s: float | None = None
) -> JobRecord:
    """The job when it has ended, or as it is after so many seconds or when the process stops.

    Args:
        store: has the job.
        job_id: which one.
        connection: the client's.
        timeout_s: longest wait, None = until the job ends.

    Raises:
        ClientGone: nobody waits any more.
        ServiceStopping: the process stops, and the wait was for the end alone.
        JobNotFound: the job is not there any more.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        left_s = SLICE_S if deadline is None else deadline - time.monotonic()
        ended = store.wait(job_id, max(0.0, min(left_s, SLICE_S)))
        if ended is not None:
            return ended
        if left_s <= 0:
            return store.get(job_id)
        if stopping.is_begun():
            if timeout_s is None:
                raise ServiceStopping(job_id)
            return store.get(job_id)
        if not connection.is_open():
            raise ClientGone("the client closed its connection")
