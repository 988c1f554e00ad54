"""A worker without a model: it claims real jobs and "generates" what the prompt tells it to.

The prompt "fail CODE" fails the job with that code; "hold" generates one token and goes on until
the job is cancelled; any other makes the tokens "0 ", "1 ", "2 ", ...
"""

from __future__ import annotations

import threading
import time

from workers.contract.attempts import Attempt, AttemptStore, Progress
from workers.contract.fleet import Fleet, WorkerCard, WorkerState
from workers.contract.redis_client import connect
from workers.contract.text_job import (
    FinishReason,
    PenaltyReport,
    PromptReport,
    SequenceResult,
    TextDelta,
    TextJob,
    TextResult,
)

MODEL = "scripted"


class ScriptedWorker:
    """Runs in a thread within a `with` block, one job at a time.

    Args:
        redis_url: where the jobs are.
        max_length: what its card says.
        slots: what its card says.
    """

    def __init__(self, redis_url: str, *, max_length: int = 512, slots: int = 4) -> None:
        client = connect(redis_url)
        self._fleet = Fleet(client)
        self._attempts = AttemptStore(
            client, worker="scripted-1", lease_s=30, result_ttl_s=60, max_attempts=3
        )
        self._card = WorkerCard(
            name="scripted-1",
            model=MODEL,
            state=WorkerState.READY,
            slots=slots,
            max_length=max_length,
            host="nowhere",
            pid=1,
            started_ms=0,
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> ScriptedWorker:
        self._fleet.report(self._card)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            attempt = self._attempts.claim(MODEL)
            if attempt is None:
                time.sleep(0.005)
            else:
                self._do(attempt)

    def _do(self, attempt: Attempt) -> None:
        job = attempt.job()
        if job.prompt.text.startswith("fail "):
            self._attempts.fail(attempt, job.prompt.text.removeprefix("fail "), "it was to fail")
            return
        n_done = n_batches = 0
        is_cancelled = attempt.is_cancelled
        while n_done < job.max_new_tokens and not is_cancelled and not self._stop.is_set():
            is_holding = job.prompt.text == "hold" and n_done == 1
            deltas = [] if is_holding else self._deltas(job, n_done)
            n_done += not is_holding
            n_batches += 1
            news = Progress(
                attempt=attempt,
                batch=n_batches,
                n_generated=n_done * job.n_sequences,
                deltas=tuple(deltas),
            )
            is_cancelled = self._attempts.publish([news]) == ["1"]
            time.sleep(0.005 * is_holding)
        self._attempts.succeed(attempt, result_of(job, n_done, is_partial=is_cancelled))

    def _deltas(self, job: TextJob, step: int) -> list[TextDelta]:
        text = _text_of(step, job.max_new_tokens)
        return [
            TextDelta(sequence=each, text=text, tokens=(step,)) for each in range(job.n_sequences)
        ]


def _text_of(step: int, n_steps: int) -> str:
    """What a step publishes: the second token's text is held back until the third."""
    if n_steps >= 3 and step in (1, 2):
        return "" if step == 1 else "1 2 "
    return f"{step} "


def result_of(job: TextJob, n_tokens: int, *, is_partial: bool = False) -> TextResult:
    """The result that so many scripted tokens are."""
    text = "".join(f"{n} " for n in range(n_tokens))
    sequence = SequenceResult(
        text=text,
        stop_string="",
        stop_match="",
        tail="",
        output_text=job.prompt.preamble + job.prompt.text + text,
        penalty_text_at_end="",
        tokens=tuple(range(n_tokens)),
        finish_reason=FinishReason.CANCELLED if is_partial else FinishReason.LENGTH,
    )
    return TextResult(
        prompt=PromptReport(
            preamble=job.prompt.preamble,
            used_prompt=job.prompt.text,
            n_preamble=0,
            n_original_prompt=3,
            n_original_input=3,
            n_used_prompt=3,
            n_used_input=3,
        ),
        penalty=PenaltyReport(),
        sequences=(sequence,) * job.n_sequences,
        n_generated=n_tokens,
        n_made=n_tokens * job.n_sequences,
        is_partial=is_partial,
    )
