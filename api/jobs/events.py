"""A job's events as a stream (server-sent events, WHATWG HTML 9.2), from any place on."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from typing import Any

import redis

from api.connection import Connection
from api.following import PING_S, follow
from api.jobs.renderer import job_body
from api.replies import to_json
from api.services import Services
from workers.contract.errors import InvalidParams, JobNotFound
from workers.contract.job_record import JobEvent
from workers.contract.store import FIRST_EVENT

COMMENT = b":\n\n"
_EVENT_ID = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?", re.ASCII)

log = logging.getLogger(__name__)


def parse_event_id(field: str, event_id: str | None) -> str:
    """Where to begin.

    Args:
        field: which part of the request says it, for the error.
        event_id: id of the last event that the client has, None = it has none.

    Raises:
        InvalidParams: it is no id of an event.
    """
    if event_id is None:
        return FIRST_EVENT
    found = _EVENT_ID.fullmatch(event_id)
    if not found or any(int(part) >= 2**64 for part in found.groups(default="0")):
        raise InvalidParams(field, f"{event_id[:40]!r} is not the id of an event")
    return event_id


class EventStream:
    """Follows one job.

    Args:
        made: the services.
        job_id: which job.
        connection: the reader's.
    """

    def __init__(self, made: Services, job_id: str, connection: Connection) -> None:
        self._made = made
        self._job_id = job_id
        self._connection = connection

    def frames(self, after: str) -> Iterator[bytes]:
        """The events after one of them, to the last one, which is the job's end.

        A reader that leaves only ends its own stream.
        """
        # The first bytes let the response's head go out, however long the first event takes.
        yield COMMENT
        try:
            yield from self._follow(after)
        except JobNotFound:
            log.info("job %s was removed while its events were read", self._job_id)
        except redis.RedisError as error:
            # The head is out; the reader comes back and goes on after the last event it has.
            log.warning("Redis failed while events of job %s were read: %s", self._job_id, error)

    def _follow(self, after: str) -> Iterator[bytes]:
        silent_since = time.monotonic()
        for news in follow(
            self._made.bell, self._made.store, {self._job_id: after}, self._connection
        ):
            frame = self._frame(news[1]) if news is not None else None
            if frame is None and time.monotonic() - silent_since >= PING_S:
                frame = COMMENT
            if frame is not None:
                yield frame
                silent_since = time.monotonic()

    def _frame(self, event: JobEvent) -> bytes | None:
        data: dict[str, Any]
        if event.kind == "delta":
            if not event.text:
                return None
            data = {"index": event.sequence, "text": event.text}
        elif event.kind == "state":
            data = {"state": event.state}
        else:
            data = job_body(self._made.store.get(self._job_id), self._made)
        return f"id: {event.id}\nevent: {event.kind}\ndata: ".encode() + to_json(data) + b"\n\n"
