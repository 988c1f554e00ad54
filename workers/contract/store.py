"""Jobs as clients see them: create, read, follow, cancel.

The worker's side of the same records is `attempts`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

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
from workers.contract.redis_client import Client, Scripts, text

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
            "user": job.user,
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
            user=job.user,
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

    def events(self, after: Mapping[str, str]) -> Sequence[tuple[str, JobEvent]]:
        """What happened to some jobs after one event of each, in one look.

        Args:
            after: by job id, the id of the last event seen, `FIRST_EVENT` = none.
        """
        reply = self._redis.xread({keys.events(job_id): last for job_id, last in after.items()})
        return [
            (text(key).removeprefix(keys.EVENTS_PREFIX), event_from_entry(entry_id, fields))
            for key, entries in reply
            for entry_id, fields in entries
        ]
