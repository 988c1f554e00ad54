"""Completions as event streams: items as the vendor's client reads them, from a job's events.

That client takes nothing but lines of data and empty ones, of bounded length, and knows no item
that tells of a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from api.aleph_alpha.renderer import finish_reason, result_of, totals
from api.aleph_alpha.tokens import kept_tokens, n_within, tell
from api.answer_stream import break_off
from api.errors import Problem
from api.replies import to_json
from workers.contract.job_record import JobEvent, JobRecord
from workers.contract.text_job import TextJob
from workers.contract.text_result import TokenScore

MAX_FRAME_BYTES = 60_000
"""Of an item of several tokens; the client's least limit of a line is 131072 bytes."""


class _Text:
    """One completion, as far as it was sent."""

    def __init__(self) -> None:
        self.has_echo = False
        self.n_sent = 0
        self._waiting: list[TokenScore] = []
        self._n_certain = 0
        """Characters of the tokens that wait which will stay."""

    def take(self, event: JobEvent) -> Sequence[TokenScore]:
        """The tokens that are certain to stay, now that this has come."""
        self._waiting += event.scores
        self._n_certain += len(event.text)
        n_ready = n_within(self._waiting, self._n_certain)
        ready, self._waiting = self._waiting[:n_ready], self._waiting[n_ready:]
        self._n_certain -= sum(len(each.text) for each in ready)
        self.n_sent += n_ready
        # An attempt that was lost may have told it, and nobody know of that.
        echo = () if self.has_echo else event.echo
        self.has_echo = self.has_echo or bool(event.echo)
        return [*echo, *ready]


class CompletionWriter:
    """Writes the items of one answer.

    Args:
        job: what was asked for.
    """

    keep_alive = b"\n"
    is_patient = True

    def __init__(self, job: TextJob) -> None:
        self._answer_fields = job.answer_fields
        self._texts = [_Text() for _ in range(job.n_sequences)]

    def begin(self) -> Iterator[bytes]:
        """The items before any text: none."""
        return iter(())

    def delta(self, job_id: str, event: JobEvent) -> Iterator[bytes]:
        """The items of what a completion gained."""
        yield from self._chunks(event.sequence, self._texts[event.sequence].take(event))

    def end(self, records: Sequence[JobRecord]) -> Iterator[bytes]:
        """The items after all text, and of what was held back until now.

        Args:
            records: the job, with its result.
        """
        (record,) = records
        result = result_of(record)
        for index, sequence in enumerate(result.sequences):
            text = self._texts[index]
            echo = () if text.has_echo else result.prompt.echo or ()
            yield from self._chunks(index, [*echo, *kept_tokens(sequence)[text.n_sent :]])
            yield _frame(
                {
                    "type": "stream_summary",
                    "index": index,
                    "model_version": record.model,
                    "finish_reason": finish_reason(sequence),
                }
            )
        yield _frame({"type": "completion_summary", **totals(result)})

    def failure(self, problem: Problem) -> Iterator[bytes]:
        """Break off: the client knows nothing that tells of a failure.

        Raises:
            ConnectionResetError: always.
        """
        break_off(problem)

    def _chunks(self, index: int, tokens: Sequence[TokenScore]) -> Iterator[bytes]:
        told = tell(tokens, self._answer_fields)
        if not any(told.values()):
            return
        frame = _frame({"type": "stream_chunk", "index": index, **told})
        if len(frame) <= MAX_FRAME_BYTES or len(tokens) == 1:
            yield frame
            return
        middle = len(tokens) // 2
        yield from self._chunks(index, tokens[:middle])
        yield from self._chunks(index, tokens[middle:])


def _frame(item: dict[str, Any]) -> bytes:
    return b"data: " + to_json(item) + b"\n\n"
