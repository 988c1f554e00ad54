from __future__ import annotations

from workers.registration.backoff import Backoff


def test_waits_double_up_to_thirty_seconds_and_start_anew_after_a_success() -> None:
    now = [0.0]
    backoff = Backoff(lambda: now[0])
    waits = []
    for _ in range(7):
        assert backoff.is_over()
        backoff.fail()
        start = now[0]
        while not backoff.is_over():
            now[0] += 1
        waits.append(now[0] - start)

    backoff.reset()

    assert waits == [1, 2, 4, 8, 16, 30, 30]
    assert backoff.is_over()


def test_a_node_may_be_away_for_very_long() -> None:
    backoff = Backoff(lambda: 0.0)

    for _ in range(5000):
        backoff.fail()

    assert not backoff.is_over()
