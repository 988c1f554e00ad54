"""Text answers as event streams: chunks as OpenAI's clients read them, from the events of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from api.errors import Problem
from api.replies import to_json
from api.standard.log_probs import ScoreLine, chat_log_probs, completion_log_probs
from api.standard.renderer import chat_head, completion_head, ending, usage_of
from api.standard_error import render_error
from workers.contract.job_record import JobEvent, JobRecord
from workers.contract.text_result import TextResult, TokenScore

DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"

WriteText = Callable[[str, Sequence[TokenScore] | None, int], dict[str, Any]]
"""Writes a text, tokens if they are to be told, and the characters of all tokens before them."""


class _Choice:
    """One text of an answer, as far as it was sent."""

    def __init__(self) -> None:
        self.n_characters = 0
        self.line = ScoreLine()


class ChunkWriter:
    """Writes the chunks of one answer.

    Args:
        records: the answer's jobs, as they were made.
        head: what every chunk begins with.
        n_texts: texts of each job.
        write: the part of a choice that has its text.
        opening: the part of a choice's first chunk in place of a text; None = it has none.
        tells_scores: whether log-probabilities are asked for.
        repeats_usage: whether the usage comes once more at the end.
    """

    keep_alive = PING
    is_patient = False
    ends_with_usage = True
    """Whether the chunk that ends the last text has the usage."""

    def __init__(
        self,
        records: Sequence[JobRecord],
        *,
        head: dict[str, Any],
        n_texts: int,
        write: WriteText,
        opening: dict[str, Any] | None,
        tells_scores: bool,
        repeats_usage: bool,
    ) -> None:
        self._places = {record.id: n * n_texts for n, record in enumerate(records)}
        self._head = head
        self._choices = [_Choice() for _ in range(n_texts * len(records))]
        self._write = write
        self._opening = opening
        self._tells_scores = tells_scores
        self._repeats_usage = repeats_usage

    def begin(self) -> Iterator[bytes]:
        """The chunks before any text."""
        if self._opening is not None:
            for index in range(len(self._choices)):
                yield self._chunk(index, self._opening, _open_end())

    def delta(self, job_id: str, event: JobEvent) -> Iterator[bytes]:
        """The chunks of what a text gained, one for each step that made some."""
        index = self._places[job_id] + event.sequence
        choice = self._choices[index]
        choice.line.add(event.scores)
        for text in event.parts:
            before = choice.line.n_told_characters
            choice.n_characters += len(text)
            told = choice.line.up_to(choice.n_characters) if self._tells_scores else None
            yield self._chunk(index, self._write(text, told, before), _open_end())

    def end(self, records: Sequence[JobRecord]) -> Iterator[bytes]:
        """The chunks after all text.

        Args:
            records: the jobs, in their order, with their results.
        """
        results = [each.result for each in records if isinstance(each.result, TextResult)]
        usage = usage_of(results)
        endings = [ending(sequence) for result in results for sequence in result.sequences]
        for index, each in enumerate(endings):
            has_usage = self.ends_with_usage and index == len(endings) - 1
            nothing = self._write("", None, 0)
            yield self._chunk(index, nothing, each, {"usage": usage} if has_usage else {})
        if self._repeats_usage:
            yield _frame({**self._head, "choices": [], "usage": usage})
        yield DONE

    def failure(self, problem: Problem) -> Iterator[bytes]:
        """The event that tells of a failure in the middle of an answer."""
        yield b"event: error\n" + _frame(render_error(problem))

    def _chunk(
        self,
        index: int,
        part: dict[str, Any],
        end: dict[str, Any],
        more: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": index, **part, **end}
        return _frame({**self._head, "choices": [choice], **(more or {})})


def chat_chunks(
    record: JobRecord, *, n_texts: int, tells_scores: bool, repeats_usage: bool
) -> ChunkWriter:
    """The chunks of a chat's answer."""
    return ChunkWriter(
        [record],
        head=chat_head(record, "chat.completion.chunk"),
        n_texts=n_texts,
        write=chat_part,
        opening={"delta": {"role": "assistant"}, "logprobs": None},
        tells_scores=tells_scores,
        repeats_usage=repeats_usage,
    )


def completion_chunks(
    records: Sequence[JobRecord], *, n_texts: int, tells_scores: bool, repeats_usage: bool
) -> ChunkWriter:
    """The chunks of a completion's answer."""
    return ChunkWriter(
        records,
        head=completion_head(records[0]),
        n_texts=n_texts,
        write=_completion_part,
        opening=None,
        tells_scores=tells_scores,
        repeats_usage=repeats_usage,
    )


def chat_part(text: str, told: Sequence[TokenScore] | None, before: int) -> dict[str, Any]:
    """A text as the part of a chat's choice that has it."""
    return {"delta": {"content": text}, "logprobs": chat_log_probs(told)}


def _completion_part(text: str, told: Sequence[TokenScore] | None, before: int) -> dict[str, Any]:
    return {"text": text, "logprobs": completion_log_probs(told, before)}


def _open_end() -> dict[str, Any]:
    return {"finish_reason": None}


def _frame(body: dict[str, Any]) -> bytes:
    return b"data: " + to_json(body) + b"\n\n"
