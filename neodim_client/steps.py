"""What calls, waits and streams do, step by step, without doing it: that is the drivers' part.

A generator says what is to be done next and is told what came of it, so that waiting and
asynchronous clients share everything but the doing.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from neodim_client.answers import Answer, error_of
from neodim_client.calls import Call
from neodim_client.errors import ConnectionFailed, NeodimClientError, TimedOut
from neodim_client.retrying import Retries, RetryPolicy

T = TypeVar("T")

RETRIED = frozenset({429, 503})
"""The server did not take the request."""

RETRIED_IF_REPEATABLE = frozenset({502, 504})
"""Somebody in between did not get the server's answer."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a call; what comes of it is the whole answer."""

    call: Call[Any]


@dataclass(frozen=True, slots=True)
class Open:
    """Send a call; what comes of it is the answer, and a good one's body is to be read."""

    call: Call[Any]


@dataclass(frozen=True, slots=True)
class Read:
    """Read on in what was opened; what comes of it is bytes, none at its end."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Let so many seconds pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Tell(Generic[T]):
    """Hand an item of a stream on."""

    item: T


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """Nothing is left to do, and this came of it."""

    value: T


Action = Send | Open | Read | Pause
Outcome: TypeAlias = Answer | bytes | None
Failure = ConnectionFailed | TimedOut
"""What a driver may report instead of an outcome."""

Steps: TypeAlias = Generator[Action, Outcome, T]
StreamSteps: TypeAlias = Generator[Action | Tell[T], Outcome, None]


def advance(
    steps: Generator[Action | Tell[Any], Outcome, T] | Steps[T], outcome: Outcome | Failure
) -> Action | Tell[Any] | Done[T]:
    """What is to be done next.

    Args:
        steps: what goes on.
        outcome: of the action before; None at the beginning.
    """
    try:
        if isinstance(outcome, NeodimClientError):
            return steps.throw(outcome)
        return steps.send(outcome)
    except StopIteration as end:
        return Done(end.value)


def result_of(call: Call[T], policy: RetryPolicy) -> Steps[T]:
    """Make a call, as often as it takes and as the policy allows.

    Raises:
        NeodimClientError: the last try's.
    """
    return call.read((yield from answer_to(Send(call), policy)))


def answer_to(action: Send | Open, policy: RetryPolicy) -> Steps[Answer]:
    """The good answer to a call, after as many tries as it takes and the policy allows.

    Raises:
        NeodimClientError: the last try's.
    """
    call, retries = action.call, Retries(policy)
    while True:
        failure: NeodimClientError
        try:
            answer = yield action
        except ConnectionFailed as error:
            failure, may_repeat = error, call.is_repeatable or not error.was_sent
        else:
            assert isinstance(answer, Answer), "a call is answered"
            if answer.is_good:
                return answer
            failure, may_repeat = error_of(answer, call.job_id), _may_repeat(call, answer.status)
        failure.job_id = failure.job_id or call.job_id
        wait_s = retries.next_wait_s(failure.retry_after_s) if may_repeat else None
        if wait_s is None:
            if retries.n_failed > 1:
                failure.add_note(f"after {retries.n_failed} tries")
            raise failure
        yield Pause(wait_s)


def _may_repeat(call: Call[Any], status: int) -> bool:
    return status in RETRIED or (call.is_repeatable and status in RETRIED_IF_REPEATABLE)
