"""Sends an answer while it is made, as server-sent events (WHATWG HTML, 9.2)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import redis
from flask import Response

from api import stopping, synchronous
from api.connection import Connection
from api.errors import problem_of
from api.following import PING_S, follow
from api.outage import patiently
from api.rejections import ClientGone, ServiceStopping
from api.services import Services
from api.standard.stream import ChunkWriter, error_frame
from api.standard_error import render_error
from workers.contract.errors import NeodimError, StoreUnavailable
from workers.contract.job_record import JobEvent, JobRecord
from workers.contract.store import FIRST_EVENT

PING = b": ping\n\n"

News = tuple[str, JobEvent] | None

log = logging.getLogger(__name__)


def answer_stream(
    made: Services, records: Sequence[JobRecord], chunks: ChunkWriter, connection: Connection
) -> Response:
    """The answer to a request whose jobs wait in line.

    Its head goes out with the first text, so that what a worker refuses is answered as an error;
    in a long line, with the first ping.

    Raises:
        NeodimError: a job failed, or was cancelled, before any text.
        ClientGone: the client left before the head went out.
    """
    news = follow(made.bell, made.store, {each.id: FIRST_EVENT for each in records}, connection)
    stream = _AnswerStream(made, records, chunks, connection)
    known = stream.before_head(news)
    return Response(
        stream.frames(chain(known, news)),
        content_type="text/event-stream; charset=utf-8",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


class _AnswerStream:
    """One answer.

    Args:
        made: the services.
        records: its jobs.
        chunks: writes it.
        connection: the client's.
    """

    def __init__(
        self,
        made: Services,
        records: Sequence[JobRecord],
        chunks: ChunkWriter,
        connection: Connection,
    ) -> None:
        self._made = made
        self._records = records
        self._chunks = chunks
        self._connection = connection
        self._open = {each.id: each for each in records}
        self._ended: dict[str, JobRecord] = {}

    def before_head(self, news: Iterator[News]) -> list[News]:
        """Wait for what decides that the head may go out; gives what came until then."""
        started = time.monotonic()
        known: list[News] = []
        try:
            for each in news:
                known.append(each)
                if each is not None:
                    self._note_end(*each)
                is_telling = each is not None and each[1].kind != "state"
                if is_telling or time.monotonic() - started >= PING_S:
                    return known
            self._raise_leaving()
        except ServiceStopping:
            raise
        except BaseException:
            self._cancel()
            raise
        return known

    def frames(self, news: Iterator[News]) -> Iterator[bytes]:
        """The events of the answer; a client that leaves cancels its jobs."""
        is_whole = False
        try:
            yield from self._chunks.begin()
            yield from self._told(news)
            self._raise_leaving()
            yield from self._chunks.end([self._ended[each.id] for each in self._records])
            is_whole = True
        except ServiceStopping as error:
            is_whole = True
            yield error_frame(render_error(problem_of(error)))
        except NeodimError as error:
            yield error_frame(render_error(problem_of(error)))
        except redis.RedisError as error:
            log.warning("Redis failed in the middle of an answer: %s", error)
            failure = StoreUnavailable("the job store does not answer")
            yield error_frame(render_error(problem_of(failure)))
        finally:
            if not is_whole:
                self._cancel()

    def _told(self, news: Iterator[News]) -> Iterator[bytes]:
        silent_since = time.monotonic()
        for each in news:
            frames: Iterator[bytes] = iter(())
            if each is not None:
                self._note_end(*each)
                if each[1].kind == "delta":
                    frames = self._chunks.delta(*each)
            elif time.monotonic() - silent_since >= PING_S:
                frames = iter((PING,))
            for frame in frames:
                yield frame
                silent_since = time.monotonic()

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
