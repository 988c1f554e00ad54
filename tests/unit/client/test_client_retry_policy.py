"""How long the waits between tries are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from neodim_client import RetryPolicy
from neodim_client.answers import Answer, error_of
from neodim_client.retrying import Retries


def waits(policy: RetryPolicy, chance: float = 0.0, asked_s: float | None = None) -> list[float]:
    """All waits of a request that fails at once each time."""
    now = 0.0
    made: list[float] = []
    retries = Retries(policy, clock=lambda: now, chance=lambda: chance)
    while (wait_s := retries.next_wait_s(asked_s)) is not None:
        made.append(wait_s)
        now += wait_s
    return made


def test_waits_double_up_to_the_longest() -> None:
    policy = RetryPolicy(attempts=6, first_wait_s=1, longest_wait_s=5)

    assert waits(policy) == [1, 2, 4, 5, 5]


def test_chance_takes_at_most_a_half() -> None:
    policy = RetryPolicy(attempts=4, first_wait_s=1, longest_wait_s=5)

    assert waits(policy, chance=1.0) == [0.5, 1, 2]


def test_waits_end_with_the_time() -> None:
    policy = RetryPolicy(attempts=100, total_s=10, first_wait_s=1, longest_wait_s=4)

    assert waits(policy) == [1, 2, 4]


def test_time_that_the_first_try_took_does_not_count() -> None:
    moments = iter([500.0, 505.0, 511.0])
    policy = RetryPolicy(attempts=100, total_s=10, first_wait_s=1, longest_wait_s=1)
    retries = Retries(policy, clock=lambda: next(moments), chance=lambda: 0.0)

    assert [retries.next_wait_s() for _ in range(3)] == [1, 1, None]


def test_asked_wait_is_never_shortened() -> None:
    policy = RetryPolicy(attempts=3, first_wait_s=1, longest_wait_s=1)

    assert waits(policy, asked_s=7) == [7, 7]
    assert waits(policy, chance=1.0, asked_s=7) == [8, 8]


def test_asked_wait_that_is_shorter_changes_nothing() -> None:
    policy = RetryPolicy(attempts=3, first_wait_s=1)

    assert waits(policy, asked_s=0) == [1, 2]


def test_tries_begin_anew_when_it_went_on_in_between() -> None:
    retries = Retries(RetryPolicy(attempts=2), chance=lambda: 0.0)
    first = retries.next_wait_s()

    retries.begin_anew()

    assert retries.next_wait_s() == first


@pytest.mark.parametrize(
    ("field", "value"),
    [("attempts", 0), ("total_s", -1), ("first_wait_s", float("nan")), ("longest_wait_s", 1e999)],
)
def test_bound_that_is_none_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{field}: must be"):
        RetryPolicy(**{field: value})


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), (" 0 ", 0), ("soon", None), ("-3", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)],
)
def test_retry_after_is_read(header: str, seconds: float | None) -> None:
    error = error_of(Answer(503, {"retry-after": header}), None)

    assert error.retry_after_s == seconds


def test_retry_after_may_be_a_date() -> None:
    moment = datetime.now(UTC) + timedelta(seconds=60)

    error = error_of(Answer(503, {"retry-after": format_datetime(moment, usegmt=True)}), None)

    assert error.retry_after_s == pytest.approx(60, abs=3)
