"""Sends an answer while it is made, as server-sent events (WHATWG HTML, 9.2)."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NoReturn, Protocol

import redis
from flask import Response

from api import stopping, synchronous
from api.connection import Connection
from api.errors import Problem, problem_of
from api.following import PING_S, follow
from api.outage import patiently
from api.rejections import ClientGone, ServiceStopping
from api.services import Services
from workers.contract.errors import NeodimError, StoreUnavailable
from workers.contract.job_record import JobEvent, JobRecord
from workers.contract.store import FIRST_EVENT

News = tuple[str, JobEvent] | None

log = logging.getLogger(__name__)


class AnswerWriter(Protocol):
    """Writes one answer, as its protocol has it."""

    @property
    def keep_alive(self) -> bytes:
        """What goes out where there was nothing for a while."""

    @property
    def is_patient(self) -> bool:
        """Whether the head waits for the first text, however long that takes."""

    def begin(self) -> Iterator[bytes]:
        """The frames before any text."""

    def delta(self, job_id: str, event: JobEvent) -> Iterator[bytes]:
        """The frames of what a text gained."""

    def end(self, records: Sequence[JobRecord]) -> Iterator[bytes]:
        """The frames after all text.

        Args:
            records: the jobs, in their order, with their results.
        """

    def failure(self, problem: Problem) -> Iterator[bytes]:
        """The frames that tell of a failure behind the head.

        Raises:
            ConnectionError: there is no such frame, so that the connection has to break.
        """


def answer_stream(
    made: Services, records: Sequence[JobRecord], writer: AnswerWriter, connection: Connection
) -> Response:
    """The answer to a request whose jobs wait in line.

    Its head goes out with the first text, so that what a worker refuses is answered as an error;
    in a long line, unless the writer is patient, after a while without any.

    Raises:
        NeodimError: a job failed, or was cancelled, before any text.
        ClientGone: the client left before the head went out.
    """
    news = follow(made.bell, made.store, {each.id: FIRST_EVENT for each in records}, connection)
    stream = _AnswerStream(made, records, writer, connection)
    first = stream.before_head(news)
    return Response(
        stream.frames(first, news),
        content_type="text/event-stream; charset=utf-8",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def break_off(problem: Problem) -> NoReturn:
    """End an answer for whose readers a failure is one that does not end properly.

    Raises:
        ConnectionResetError: always; gunicorn closes the connection in the middle of the body.
    """
    log.warning("an answer breaks off: %s", problem.message)
    raise ConnectionResetError(errno.ECONNRESET, "an answer breaks off")


class _AnswerStream:
    """One answer.

    Args:
        made: the services.
        records: its jobs.
        writer: writes it.
        connection: the client's.
    """

    def __init__(
        self,
        made: Services,
        records: Sequence[JobRecord],
        writer: AnswerWriter,
        connection: Connection,
    ) -> None:
        self._made = made
        self._records = records
        self._writer = writer
        self._connection = connection
        self._open = {each.id: each for each in records}
        self._ended: dict[str, JobRecord] = {}

    def before_head(self, news: Iterator[News]) -> list[bytes]:
        """Wait for what decides that the head may go out; gives the text that came until then."""
        started = time.monotonic()
        try:
            for each in news:
                frames = list(self._frames_of(each))
                is_late = time.monotonic() - started >= PING_S
                if frames or (is_late and not self._writer.is_patient):
                    return frames
            self._raise_leaving()
        except ServiceStopping:
            raise
        except BaseException:
            self._cancel()
            raise
        return []

    def frames(self, first: Sequence[bytes], news: Iterator[News]) -> Iterator[bytes]:
        """The events of the answer; a client that leaves cancels its jobs.

        Args:
            first: those of the text that has come.
            news: what comes behind that.
        """
        is_whole = False
        try:
            yield from self._writer.begin()
            yield from first
            yield from self._told(news)
            self._raise_leaving()
            yield from self._writer.end([self._ended[each.id] for each in self._records])
            is_whole = True
        except ServiceStopping as error:
            is_whole = True
            yield from self._failure(error)
        except NeodimError as error:
            yield from self._failure(error)
        except redis.RedisError as error:
            log.warning("Redis failed in the middle of an answer: %s", error)
            yield from self._failure(StoreUnavailable("the job store does not answer"))
        finally:
            if not is_whole:
                self._cancel()

    def _told(self, news: Iterator[News]) -> Iterator[bytes]:
        silent_since = time.monotonic()
        for each in news:
            frames = self._frames_of(each)
            if each is None and time.monotonic() - silent_since >= PING_S:
                frames = iter((self._writer.keep_alive,))
            for frame in frames:
                yield frame
                silent_since = time.monotonic()

    def _frames_of(self, news: News) -> Iterator[bytes]:
        if news is None:
            return iter(())
        self._note_end(*news)
        return self._writer.delta(*news) if news[1].kind == "delta" else iter(())

    def _failure(self, error: NeodimError) -> Iterator[bytes]:
        return self._writer.failure(problem_of(error))

    def _note_end(self, job_id: str, event: JobEvent) -> None:
        if event.is_last and job_id in self._open:
            del self._open[job_id]
            # Now, since a record may not be kept until the last of many jobs ends.
            record = patiently(partial(self._made.store.get, job_id))
            self._ended[job_id] = record
            synchronous.raise_failure(record)

    def _cancel(self) -> None:
        synchronous.cancel_all(self._made, list(self._open.values()))

    def _raise_leaving(self) -> None:
        """Say why the news stopped before the end, if they did."""
        if not self._open:
            return
        if stopping.is_begun():
            raise ServiceStopping(self._records[0].id)
        raise ClientGone("the client closed its connection")
