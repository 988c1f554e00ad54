"""The steps of streams: a job's events, taken up again wherever they break off, and completions."""

from __future__ import annotations

import time
from typing import Any

from neodim_client import calls
from neodim_client.answers import Answer, parse
from neodim_client.calls import Call
from neodim_client.completion import CompletionSummary, StreamItem, stream_item
from neodim_client.errors import BrokenStream, ConnectionFailed, InvalidAnswer, TimedOut
from neodim_client.jobs import Job, JobEnded, JobEvent, JobState, StateChanged, TextAdded
from neodim_client.retrying import Retries, RetryPolicy
from neodim_client.sse import EventReader, ServerSentEvent
from neodim_client.steps import Open, Pause, Read, Steps, StreamSteps, Tell, answer_to

SILENCE_S = 60.0
"""Silence behind which a stream of events is dead: the server sends comments every 15 s."""

LIVELY_S = 10.0
"""A stream that lasted so long did not fail at once, even if nothing happened to its job."""


def job_events(job_id: str, after: str | None, policy: RetryPolicy) -> StreamSteps[JobEvent[Any]]:
    """Follow a job's events to its end, each once, however often the connection breaks.

    Args:
        job_id: which job.
        after: id of the last event that is known, None = from the first one.
        policy: bounds the tries that bring nothing new.

    Raises:
        NeodimClientError: the server cannot be asked, or has no such job.
        BrokenStream: streams break off again and again without anything new.
    """
    retries = Retries(policy)
    while True:
        yield from _opened(calls.events(job_id, after, SILENCE_S), policy)
        began, reader = time.monotonic(), EventReader()
        problem = "it ended"
        while piece := (yield from _read()):
            if isinstance(piece, str):
                problem = piece
                break
            for each in reader.feed(piece):
                # An event that was cut off is not complete, and comes again behind the last one.
                after = each.id or after
                retries.begin_anew()
                event = _event(each)
                if event is not None:
                    yield Tell(event)
                if isinstance(event, JobEnded):
                    return
        if time.monotonic() - began >= LIVELY_S:
            retries.begin_anew()
        wait_s = retries.next_wait_s()
        if wait_s is None:
            message = f"the events of job {job_id} break off again and again: {problem}"
            raise BrokenStream(message, job_id=job_id)
        yield Pause(wait_s)


def completion_items(call: Call[None], policy: RetryPolicy) -> StreamSteps[StreamItem]:
    """Read a streamed completion to its end.

    Args:
        call: asks for it.
        policy: bounds the tries until it begins; what has begun cannot be taken up again.

    Raises:
        NeodimClientError: the server refuses it, or cannot be asked.
        BrokenStream: it broke off.
    """
    answer = yield from _opened(call, policy)
    reader = EventReader()
    problem = "it ended before its summary"
    while piece := (yield from _read()):
        if isinstance(piece, str):
            problem = piece
            break
        for each in reader.feed(piece):
            item = parse(each.text, stream_item)
            yield Tell(item)
            if isinstance(item, CompletionSummary):
                return
    request_id = answer.headers.get("x-request-id")
    raise BrokenStream(f"the stream broke off: {problem}", request_id=request_id)


def _opened(call: Call[None], policy: RetryPolicy) -> Steps[Answer]:
    answer = yield from answer_to(Open(call), policy)
    kind = answer.headers.get("content-type", "")
    if not kind.startswith("text/event-stream"):
        raise InvalidAnswer(f"the server's answer should be an event stream, not {kind!r}")
    return answer


def _read() -> Steps[bytes | str]:
    """The next bytes, none at the end, or why there are no more."""
    try:
        piece = yield Read()
    except (ConnectionFailed, TimedOut) as error:
        return error.message or "it failed"
    assert isinstance(piece, bytes), "what is read is bytes"
    return piece


def _event(event: ServerSentEvent) -> JobEvent[Any] | None:
    """A job's event; None for a kind that a newer server may have."""
    if event.kind == "state":
        return parse(event.text, lambda json: StateChanged(event.id, JobState(json["state"])))
    if event.kind == "delta":
        return parse(event.text, lambda json: TextAdded(event.id, json["index"], json["text"]))
    if event.kind in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED):
        return parse(event.text, lambda json: JobEnded(event.id, Job.from_json(json)))
    return None
