"""The names of everything this project keeps in Redis, and who removes it.

`job` and `events` of one job get the same time to live when the job ends; `waiting` and `leases`
hold only jobs that have not ended; `worker` expires unless its worker keeps it alive, and
`tokenizer` a day later; `picture` is written just before its job ends, to live as long.
"""

from __future__ import annotations

PREFIX = "neodim:"
JOB_PREFIX = f"{PREFIX}job:"
EVENTS_PREFIX = f"{PREFIX}events:"
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
NEWS = f"{PREFIX}news"
"""Channel: ids of jobs whose streams have grown, "ended " before those that ended."""
MODEL_SERVERS = f"{PREFIX}model-servers"
"""Set: ids of servers that registered here; expires with the last one's registration."""


def job(job_id: str) -> str:
    """Hash: the job's record."""
    return JOB_PREFIX + job_id


def events(job_id: str) -> str:
    """Stream: what happened to the job, in order."""
    return EVENTS_PREFIX + job_id


def picture(job_id: str, n: int) -> str:
    """String: the file of a picture that the job has drawn, numbered from 0."""
    return f"{PICTURE_PREFIX}{job_id}:{n}"


def waiting(model: str) -> str:
    """Sorted set: jobs that wait for a worker of the model, by place."""
    return WAITING_PREFIX + model


def worker(name: str) -> str:
    """Hash: what a worker says of itself."""
    return f"{PREFIX}worker:{name}"


def tokenizer(model: str) -> str:
    """Hash: the model's `tokenizer.json`, compressed, and its digest; expires."""
    return f"{PREFIX}tokenizer:{model}"


def registrar(node: str) -> str:
    """Which worker registers models with a node; expires."""
    return f"{PREFIX}registrar:{node}"


def registered(node: str) -> str:
    """Hash: what a node was told of; expires a day after the last change."""
    return f"{PREFIX}registered:{node}"


def node_status(node: str) -> str:
    """How things stand with a node, in JSON; expires."""
    return f"{PREFIX}node-status:{node}"


def model_server(server: str) -> str:
    """What a server said when it registered here; expires unless it does so again."""
    return f"{PREFIX}model-server:{server}"


def forwarded(server: str) -> str:
    """Sorted set: requests that a server works on, by when their mark lapses; expires with it."""
    return f"{PREFIX}forwarded:{server}"


def set_aside(address: str) -> str:
    """There while an address that did not answer is not tried; expires."""
    return f"{PREFIX}set-aside:{address}"


def turn(model: str) -> str:
    """Counter: whose turn it is among servers that are equally busy; expires when unused."""
    return f"{PREFIX}turn:{model}"


def of_an_end(job_id: str, model: str) -> list[str]:
    """The keys that the script `finish` takes."""
    return [job(job_id), events(job_id), LEASES, waiting(model)]
