"""Jobs as clients see them: create, read, wait, follow, cancel.

The worker's side of the same records is `attempts`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from workers.contract import keys
from workers.contract.errors import JobNotFound
from workers.contract.job_body import Job, encode, n_expected
from workers.contract.job_record import (
    RECORD_FIELDS,
    JobEvent,
    JobRecord,
    JobState,
    event_from_entry,
    pack,
    record_from_hash,
)
from workers.contract.redis_client import BLOCK_SLICE_S, Client, Scripts, text

FIRST_EVENT = "0-0"
"""Reading after this reads a job's stream from its beginning."""


class JobStore:
    """The job records of one service.

    Args:
        client: connection to the Redis that holds them.
        result_ttl_s: seconds for which an ended job is kept.
    """

    def __init__(self, client: Client, result_ttl_s: int) -> None:
        self._redis = client
        self._scripts = Scripts(client)
        self._result_ttl_s = result_ttl_s

    def create(self, protocol: str, job: Job, owner: str = "") -> JobRecord:
        """Write a new job and put it in line; its ticket is the caller's to send.

        Args:
            protocol: which protocol asked, and will read the result.
            job: the canonical request.
            owner: fingerprint of the API key, "" = none.

        Raises:
            redis.RedisError: Redis did not take it; nothing was accepted then.
        """
        job_id = str(uuid.uuid4())
        fields: dict[str, str | int | bytes] = {
            "protocol": protocol,
            "model": job.model,
            "owner": owner,
            "n_generated": 0,
            "n_expected": n_expected(job),
            "job": pack(encode(job)),
        }
        created_ms = self._scripts.create(
            keys=[keys.job(job_id), keys.events(job_id), keys.waiting(job.model), keys.ORDER],
            args=[job_id, *(part for pair in fields.items() for part in pair)],
        )
        return JobRecord(
            id=job_id,
            protocol=protocol,
            model=job.model,
            state=JobState.QUEUED,
            owner=owner,
            created_ms=int(created_ms),
            started_ms=None,
            finished_ms=None,
            attempt=0,
            worker=None,
            n_generated=0,
            n_expected=n_expected(job),
            result=None,
            error=None,
        )

    def get(self, job_id: str) -> JobRecord:
        """The job as it stands.

        Raises:
            JobNotFound: there is none of that id.
        """
        values = self._redis.hmget(keys.job(job_id), RECORD_FIELDS)
        fields = dict(zip(RECORD_FIELDS, values, strict=True))
        if fields[b"id"] is None:
            raise JobNotFound(job_id)
        return record_from_hash({name: each for name, each in fields.items() if each is not None})

    def cancel(self, job_id: str) -> JobRecord:
        """Ask a job to end; what it has generated so far is kept.

        A job that no worker has begun ends here; another one ends at its worker's next step. An
        ended job stays as it is.

        Raises:
            JobNotFound: there is none of that id.
        """
        while True:
            found = text(self._scripts.cancel(keys=[keys.job(job_id)]))
            if found == "unknown":
                raise JobNotFound(job_id)
            if found != "idle" or self._end_unbegun(job_id):
                return self.get(job_id)

    def _end_unbegun(self, job_id: str) -> bool:
        """End a job that no attempt has begun; False when a worker was faster."""
        model = text(self._redis.hget(keys.job(job_id), "model") or "")
        ended = self._scripts.finish(
            keys=keys.of_an_end(job_id, model),
            args=[job_id, JobState.QUEUED, 0, JobState.CANCELLED, self._result_ttl_s],
        )
        return bool(ended)

    def wait(self, job_id: str, timeout_s: float) -> JobRecord | None:
        """Wait until the job has ended, or for so long.

        Returns:
            The ended job; None = it has not ended yet.

        Raises:
            JobNotFound: there is none of that id.
        """
        deadline = time.monotonic() + timeout_s
        key = keys.done(job_id)
        has_ended = None
        while has_ended is None:
            left_s = max(0.01, min(deadline - time.monotonic(), BLOCK_SLICE_S))
            # Moving the one element within its list wakes every waiter and removes nothing.
            has_ended = self._redis.blmove(key, key, left_s, "LEFT", "LEFT")
            if has_ended is None and time.monotonic() >= deadline:
                if not self._redis.exists(keys.job(job_id)):
                    raise JobNotFound(job_id)
                return None
        return self.get(job_id)

    def events(self, job_id: str, after: str, block_s: float) -> Sequence[JobEvent]:
        """The job's events after one of them; waits for the first if there are none yet.

        Args:
            job_id: whose events.
            after: id of the last event seen, `FIRST_EVENT` = none.
            block_s: longest wait in seconds, 0 = none.
        """
        block_ms = max(1, int(min(block_s, BLOCK_SLICE_S) * 1000)) if block_s > 0 else None
        reply = self._redis.xread({keys.events(job_id): after}, block=block_ms)
        entries = reply[0][1] if reply else []
        return [event_from_entry(entry_id, fields) for entry_id, fields in entries]
