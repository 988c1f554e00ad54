"""The steps of waiting for a job's end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from neodim_client import calls
from neodim_client.errors import TimedOut
from neodim_client.jobs import Job
from neodim_client.retrying import RetryPolicy
from neodim_client.steps import Pause, Steps, result_of

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
GROWTH = 1.5


def ended_job(
    job_id: str,
    policy: RetryPolicy,
    timeout_s: float | None,
    show: Callable[[Job[Any]], None] | None,
) -> Steps[Job[Any]]:
    """Look at a job, more and more seldom, until it has ended.

    Args:
        job_id: which job.
        policy: bounds the tries of each look.
        timeout_s: longest wait, None = until it has ended.
        show: is told what each look sees, None = nobody is.

    Raises:
        TimedOut: it has not ended by then; it goes on.
        NeodimClientError: the server cannot be asked, or has no such job.
    """
    began, pause_s = time.monotonic(), FIRST_PAUSE_S
    while True:
        job = yield from result_of(calls.get_job(job_id), policy)
        if show is not None:
            show(job)
        if job.state.is_ended:
            return job
        if timeout_s is not None:
            left_s = began + timeout_s - time.monotonic()
            if left_s <= 0:
                message = f"job {job_id} is still {job.state} after {timeout_s:g} s"
                raise TimedOut(message, job_id=job_id)
            pause_s = min(pause_s, left_s)
        yield Pause(pause_s)
        pause_s = min(pause_s * GROWTH, LONGEST_PAUSE_S)
