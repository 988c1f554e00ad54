"""What admitting and claiming a job costs in Redis while others wait there."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import redis

from api.neodim import adapter
from bench.report import Row, Table
from bench.spread import spread_of
from workers.contract.attempts import AttemptStore
from workers.contract.redis_client import Client, connect
from workers.contract.settings import Settings
from workers.contract.store import JobStore
from workers.launcher.redis_server import find_binary

SAMPLES = 50
SETTINGS = Settings()
REQUEST = {"prompt": "Once upon a time", "generated_tokens_count": 16, "max_total_tokens": 64}


def queue_table(waiting: Sequence[int]) -> Table:
    """Time to create a job, and to claim the first in line, by jobs that wait."""
    rows: list[Row] = []
    job = adapter.load(REQUEST, SETTINGS)
    with _own_redis() as client:
        store = JobStore(client, SETTINGS.result_ttl_s)
        worker = AttemptStore(
            client,
            worker="bench",
            lease_s=SETTINGS.lease_s,
            result_ttl_s=SETTINGS.result_ttl_s,
            max_attempts=SETTINGS.max_attempts,
        )
        for n_waiting in waiting:
            client.flushall()
            for _ in range(n_waiting):
                store.create("neodim", job)
            created, claimed = [], []
            for _ in range(SAMPLES):
                start = time.perf_counter()
                store.create("neodim", job)
                middle = time.perf_counter()
                worker.claim(job.model)
                created.append((middle - start) * 1000)
                claimed.append((time.perf_counter() - middle) * 1000)
            rows.append(
                {
                    "waiting": n_waiting,
                    **spread_of(created).columns("create ms"),
                    **spread_of(claimed).columns("claim ms"),
                }
            )
    return Table("queue", "jobs that wait in Redis; create and claim of one more", rows)


@contextmanager
def _own_redis() -> Iterator[Client]:
    """A Redis on a Unix socket that is ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="neodim-") as directory:
        socket_path = Path(directory) / "redis.sock"
        options = {"port": "0", "unixsocket": str(socket_path), "save": "", "dir": directory}
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        process = subprocess.Popen([find_binary().path, *arguments], stdout=subprocess.DEVNULL)
        try:
            yield _answering(f"unix://{socket_path}")
        finally:
            process.terminate()
            process.wait()


def _answering(url: str) -> Client:
    """A client of a Redis that is starting.

    Raises:
        redis.ConnectionError: it does not start.
    """
    for _ in range(100):
        try:
            client = connect(url)
            client.ping()
            return client
        except redis.ConnectionError:
            time.sleep(0.05)
    raise redis.ConnectionError("the Redis of the bench does not start")
