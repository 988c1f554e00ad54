"""The names of everything this project keeps in Redis, and who removes it.

`job`, `events` and `done` of one job get the same time to live when the job ends; `waiting` and
`leases` hold only jobs that have not ended; `worker` expires unless its worker keeps it alive;
`picture` is written just before its job ends, to live as long.
"""

from __future__ import annotations

PREFIX = "neodim:"
JOB_PREFIX = f"{PREFIX}job:"
EVENTS_PREFIX = f"{PREFIX}events:"
DONE_PREFIX = f"{PREFIX}done:"
PICTURE_PREFIX = f"{PREFIX}picture:"
WAITING_PREFIX = f"{PREFIX}waiting:"
LEASES = f"{PREFIX}leases"
"""Sorted set: running jobs by the millisecond at which their lease lapses."""
ORDER = f"{PREFIX}order"
"""Counter: places in the waiting line."""
WORKERS = f"{PREFIX}workers"
"""Set: names of workers; those whose card has expired are removed by who reads it."""
SWEEPER = f"{PREFIX}sweeper"
"""Which worker sweeps; expires."""


def job(job_id: str) -> str:
    """Hash: the job's record."""
    return JOB_PREFIX + job_id


def events(job_id: str) -> str:
    """Stream: what happened to the job, in order."""
    return EVENTS_PREFIX + job_id


def done(job_id: str) -> str:
    """List with one element once the job has ended; waiters block on it."""
    return DONE_PREFIX + job_id


def picture(job_id: str, n: int) -> str:
    """String: the file of a picture that the job has drawn, numbered from 0."""
    return f"{PICTURE_PREFIX}{job_id}:{n}"


def waiting(model: str) -> str:
    """Sorted set: jobs that wait for a worker of the model, by place."""
    return WAITING_PREFIX + model


def worker(name: str) -> str:
    """Hash: what a worker says of itself."""
    return f"{PREFIX}worker:{name}"


def of_an_end(job_id: str, model: str) -> list[str]:
    """The keys that the script `finish` takes."""
    return [job(job_id), events(job_id), done(job_id), LEASES, waiting(model)]
