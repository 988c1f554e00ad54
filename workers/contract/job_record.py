"""The job record: the one truth about a job, and its form in Redis."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from workers.contract.job_body import Result, decode_result
from workers.contract.text_result import TextDelta, TokenScore

COMPRESSED_FROM_BYTES = 16 * 1024
COMPRESSED_TO_BYTES = 2 * 1024 * 1024
"""What is longer holds pictures, which are compressed already; trying would hold up the API."""

RECORD_FIELDS = (
    b"id",
    b"protocol",
    b"model",
    b"state",
    b"owner",
    b"created_ms",
    b"started_ms",
    b"finished_ms",
    b"attempt",
    b"worker",
    b"n_generated",
    b"n_expected",
    b"result",
    b"error_code",
    b"error_message",
    b"user",
)
"""What a record is made of: all of a job's hash but the job itself, which can be megabytes."""


class JobState(StrEnum):
    """Where a job is; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will happen to the job."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job as it stands.

    Args:
        owner: fingerprint of the API key that submitted it, "" = none.
        created_ms, started_ms, finished_ms: milliseconds since the epoch by Redis' clock.
        attempt: 0 until a worker claims it, then 1, 2, ...
        worker: who has it, or had it last.
        user: who asked, in the client's words; "" = not said.
        error: code and message of a failed job.
    """

    id: str
    protocol: str
    model: str
    state: JobState
    owner: str
    created_ms: int
    started_ms: int | None
    finished_ms: int | None
    attempt: int
    worker: str | None
    n_generated: int
    n_expected: int
    result: Result | None
    error: tuple[str, str] | None
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One entry of a job's stream.

    Args:
        id: place in the stream, as Redis gives it.
        kind: "delta", "state", or the final state.
        sequence: which sequence a delta belongs to.
        text: text that a delta adds.
        tokens: tokens that a delta stands for; may hold some whose text is still held back.
        scores: of the tokens, when the job needs log-probabilities.
        cuts: lengths of the parts in which the text came; empty = in one.
        echo: tokens of the prompt, before the first of the sequence's own.
        state: the new state of a "state" event.
    """

    id: str
    kind: str
    sequence: int = 0
    text: str = ""
    tokens: tuple[int, ...] = ()
    scores: tuple[TokenScore, ...] = ()
    cuts: tuple[int, ...] = ()
    echo: tuple[TokenScore, ...] = ()
    state: str = ""

    @property
    def delta(self) -> TextDelta:
        """What a "delta" event says."""
        return TextDelta(
            sequence=self.sequence,
            text=self.text,
            tokens=self.tokens,
            scores=self.scores,
            echo=self.echo,
        )

    @property
    def parts(self) -> Iterator[str]:
        """The text that a delta adds, as it came; nothing where it adds none."""
        start = 0
        for length in self.cuts or (len(self.text),) * bool(self.text):
            yield self.text[start : start + length]
            start += length

    @property
    def is_last(self) -> bool:
        """Whether the stream ends here."""
        return self.kind not in ("delta", "state")


def pack(body: bytes) -> bytes:
    """A body as stored: compressed where that pays, told apart by its first byte."""
    if not COMPRESSED_FROM_BYTES <= len(body) <= COMPRESSED_TO_BYTES:
        return b"p" + body
    return b"z" + zlib.compress(body, level=1)


def unpack(stored: bytes) -> bytes:
    """The body that `pack` was given."""
    return zlib.decompress(stored[1:]) if stored[:1] == b"z" else stored[1:]


def record_from_hash(fields: dict[bytes, bytes]) -> JobRecord:
    """The record in a job's Redis hash (names and values as bytes)."""

    def text(name: bytes) -> str | None:
        value = fields.get(name)
        return value.decode() if value else None

    def number(name: bytes) -> int | None:
        value = fields.get(name)
        return int(value) if value else None

    result = fields.get(b"result")
    code = text(b"error_code")
    return JobRecord(
        id=fields[b"id"].decode(),
        protocol=fields[b"protocol"].decode(),
        model=fields[b"model"].decode(),
        state=JobState(fields[b"state"].decode()),
        owner=text(b"owner") or "",
        created_ms=number(b"created_ms") or 0,
        started_ms=number(b"started_ms"),
        finished_ms=number(b"finished_ms"),
        attempt=number(b"attempt") or 0,
        worker=text(b"worker"),
        n_generated=number(b"n_generated") or 0,
        n_expected=number(b"n_expected") or 0,
        result=decode_result(unpack(result)) if result else None,
        error=(code, text(b"error_message") or "") if code else None,
        user=text(b"user") or "",
    )


def pack_scores(scores: tuple[TokenScore, ...]) -> bytes:
    """Scores as an entry of a job's stream has them; none are nothing."""
    return msgspec.json.encode(scores) if scores else b""


def event_from_entry(entry_id: bytes, fields: dict[bytes, bytes]) -> JobEvent:
    """The event in an entry of a job's stream."""
    return JobEvent(
        id=entry_id.decode(),
        kind=fields[b"kind"].decode(),
        sequence=int(fields.get(b"sequence", b"0")),
        text=fields.get(b"text", b"").decode(),
        tokens=_numbers(fields.get(b"tokens", b"")),
        scores=_scores(fields.get(b"scores", b"")),
        echo=_scores(fields.get(b"echo", b"")),
        cuts=_numbers(fields.get(b"cuts", b"")),
        state=fields.get(b"state", b"").decode(),
    )


def _scores(packed: bytes) -> tuple[TokenScore, ...]:
    return msgspec.json.decode(packed, type=tuple[TokenScore, ...]) if packed else ()


def _numbers(packed: bytes) -> tuple[int, ...]:
    return tuple(map(int, packed.split(b","))) if packed else ()
