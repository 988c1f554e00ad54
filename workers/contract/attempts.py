"""Jobs as workers see them: claim, publish, finish, hand back, and what to do about lost workers.

Every write names its attempt, which Redis checks: who lost the lease can write nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workers.contract import keys
from workers.contract.errors import LeaseLost, WorkerLost
from workers.contract.job_body import Job, Result, decode_job, encode
from workers.contract.job_record import (
    JobState,
    event_from_entry,
    pack,
    pack_scores,
    unpack,
)
from workers.contract.redis_client import Client, Scripts, text
from workers.contract.text_result import TextDelta, join_deltas


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One worker's go at one job; `number` is the fencing token."""

    job_id: str
    model: str
    number: int
    is_cancelled: bool
    body: bytes

    def job(self) -> Job:
        """The canonical request.

        Raises:
            msgspec.ValidationError, InvalidParams: it was written by another version.
        """
        return decode_job(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """News of one attempt; those of one `batch` number are written once, however often sent.

    Args:
        n_generated: how much is done so far.
        n_expected: how much there is to do, where the job itself did not tell; None = it did.
    """

    attempt: Attempt
    batch: int
    n_generated: int
    deltas: tuple[TextDelta, ...]
    n_expected: int | None = None


class AttemptStore:
    """The worker's side of the job records.

    Args:
        client: connection to the Redis that holds them.
        worker: this worker's name.
        lease_s: seconds after which silence means that the worker is lost.
        result_ttl_s: seconds for which an ended job is kept.
        max_attempts: workers that a job may lose before it fails.
    """

    def __init__(
        self,
        client: Client,
        *,
        worker: str,
        lease_s: int,
        result_ttl_s: int,
        max_attempts: int,
    ) -> None:
        self._redis = client
        self._scripts = Scripts(client)
        self._worker = worker
        self._lease_ms = lease_s * 1000
        self._result_ttl_s = result_ttl_s
        self._max_attempts = max_attempts

    def claim(self, model: str) -> Attempt | None:
        """The next waiting job of a model, now this worker's; None when nothing waits."""
        reply = self._scripts.claim(
            keys=[keys.waiting(model), keys.LEASES],
            args=[self._worker, self._lease_ms, keys.JOB_PREFIX, keys.EVENTS_PREFIX],
        )
        if not reply:
            return None
        job_id, number, body, cancel = reply
        return Attempt(
            job_id=text(job_id),
            model=model,
            number=int(number),
            is_cancelled=bool(cancel),
            body=unpack(body),
        )

    def made_so_far(self, attempt: Attempt) -> Mapping[int, TextDelta]:
        """What earlier attempts published, by sequence: where this one goes on."""
        parts: dict[int, list[TextDelta]] = {}
        for entry_id, fields in self._redis.xrange(keys.events(attempt.job_id)):
            event = event_from_entry(entry_id, fields)
            if event.kind == "delta":
                parts.setdefault(event.sequence, []).append(event.delta)
        return {sequence: join_deltas(sequence, deltas) for sequence, deltas in parts.items()}

    def publish(self, news: Iterable[Progress]) -> list[str]:
        """Write news of several attempts in one round trip, and renew their leases.

        Returns:
            For each: "" = go on, "1" = the job was cancelled, "lost" = it is another's now.
        """
        with self._redis.pipeline(transaction=False) as pipeline:
            for each in news:
                job_id = each.attempt.job_id
                arguments: list[str | int | bytes] = []
                for delta in each.deltas:
                    arguments += [delta.sequence, delta.text, _packed(delta.tokens)]
                    arguments += [pack_scores(delta.scores), _packed(delta.cuts)]
                    arguments += [pack_scores(delta.echo)]
                self._scripts.publish(
                    keys=[keys.job(job_id), keys.events(job_id), keys.LEASES],
                    args=[
                        job_id,
                        each.attempt.number,
                        self._lease_ms,
                        each.batch,
                        each.n_generated,
                        "" if each.n_expected is None else each.n_expected,
                        *arguments,
                    ],
                    client=pipeline,
                )
            return [text(reply) for reply in pipeline.execute()]

    def succeed(self, attempt: Attempt, result: Result) -> None:
        """End the job with its result: succeeded, or cancelled if the result is partial.

        Raises:
            LeaseLost: it is another's now; nothing was written.
        """
        state = JobState.CANCELLED if result.is_partial else JobState.SUCCEEDED
        self._finish(attempt, state, {"result": pack(encode(result))})

    def end_cancelled(self, attempt: Attempt) -> None:
        """End a cancelled job of which nothing made so far is of use.

        Raises:
            LeaseLost: it is another's now; nothing was written.
        """
        self._finish(attempt, JobState.CANCELLED, {})

    def fail(self, attempt: Attempt, code: str, message: str) -> None:
        """End the job with an error.

        Raises:
            LeaseLost: it is another's now; nothing was written.
        """
        self._finish(attempt, JobState.FAILED, {"error_code": code, "error_message": message})

    def hand_back(self, attempt: Attempt) -> None:
        """Put the job back in line for another worker, without counting it as a loss."""
        self._requeue(attempt, is_loss=False)

    def sweep(self) -> list[str]:
        """Take jobs from workers that fell silent: back in line, or failed after too many.

        Returns:
            Models that have waiting jobs because of it.
        """
        seconds, micros = self._redis.time()
        now_ms = seconds * 1000 + micros // 1000
        models = []
        for job_id in map(text, self._redis.zrangebyscore(keys.LEASES, 0, now_ms)):
            number, model = self._redis.hmget(keys.job(job_id), "attempt", "model")
            attempt = Attempt(
                job_id=job_id,
                model=text(model or ""),
                number=int(number or 0),
                is_cancelled=False,
                body=b"",
            )
            if self._requeue(attempt, is_loss=True) == "queued":
                models.append(attempt.model)
        return models

    def _requeue(self, attempt: Attempt, *, is_loss: bool) -> str:
        outcome = text(
            self._scripts.requeue(
                keys=[
                    keys.job(attempt.job_id),
                    keys.events(attempt.job_id),
                    keys.LEASES,
                    keys.waiting(attempt.model),
                ],
                args=[attempt.job_id, attempt.number, int(is_loss), self._max_attempts],
            )
        )
        if outcome == "exhausted":
            message = f"{self._max_attempts} workers were lost while they ran this job"
            self.fail(attempt, WorkerLost.code, message)
        return outcome

    def _finish(self, attempt: Attempt, state: JobState, fields: Mapping[str, str | bytes]) -> None:
        job_id = attempt.job_id
        ended = self._scripts.finish(
            keys=keys.of_an_end(job_id, attempt.model),
            args=[
                job_id,
                JobState.RUNNING,
                attempt.number,
                state,
                self._result_ttl_s,
                *(part for pair in fields.items() for part in pair),
            ],
        )
        if not ended:
            raise LeaseLost(
                f"attempt {attempt.number} at job {job_id} is no longer the current one"
            )


def _packed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
