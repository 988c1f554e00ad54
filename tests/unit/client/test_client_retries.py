"""Which requests are sent again, when, and how often."""

from __future__ import annotations

import time
from typing import Any

import pytest
from scripted_server import GENERATED, KINDS, ScriptedServer, drops, job_json, says, use

from neodim_client import (
    ConnectionFailed,
    GenerateRequest,
    NeodimClientError,
    RetryPolicy,
    ServerFailure,
    TimedOut,
    TooManyRequests,
    Unavailable,
)

pytestmark = pytest.mark.parametrize("kind", KINDS)

REQUEST = GenerateRequest(prompt="One", generated_tokens_count=1, max_total_tokens=8)
LOADING = {"error": "gpt2 is loading"}


def generate(client: Any) -> Any:
    return client.generate(REQUEST)


def submit(client: Any) -> Any:
    return client.jobs.submit(REQUEST)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("what", [generate, submit])
def test_request_that_was_not_taken_is_sent_again(kind: str, status: int, what: Any) -> None:
    answer = GENERATED if what is generate else job_json()
    with ScriptedServer(says(status, LOADING), says(status, LOADING), says(200, answer)) as server:
        use(kind, server.url, what)

    assert len(server.calls) == 3
    assert len({call.body for call in server.calls}) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_next_try_waits_as_long_as_the_server_asks(kind: str, status: int) -> None:
    with ScriptedServer(says(status, LOADING, Retry_After="1"), says(200, GENERATED)) as server:
        began = time.monotonic()
        use(kind, server.url, generate)

    assert 1 <= time.monotonic() - began < 3


def test_server_that_asks_for_too_long_a_wait_is_not_waited_for(kind: str) -> None:
    with (
        ScriptedServer(says(503, LOADING, Retry_After="3600")) as server,
        pytest.raises(Unavailable) as caught,
    ):
        use(kind, server.url, generate)

    assert len(server.calls) == 1
    assert caught.value.retry_after_s == 3600


def test_tries_are_bounded(kind: str) -> None:
    policy = RetryPolicy(attempts=3, first_wait_s=0.001)
    with ScriptedServer(says(429, LOADING)) as server, pytest.raises(TooManyRequests):
        use(kind, server.url, generate, retries=policy)

    assert len(server.calls) == 3


def test_time_of_all_tries_is_bounded(kind: str) -> None:
    policy = RetryPolicy(attempts=10_000, total_s=0.3, first_wait_s=0.02, longest_wait_s=0.02)
    began = time.monotonic()
    with ScriptedServer(says(503, LOADING)) as server, pytest.raises(Unavailable):
        use(kind, server.url, generate, retries=policy)

    assert time.monotonic() - began < 2
    assert 1 < len(server.calls) < 40


def test_repeatable_request_is_sent_again_behind_a_dropped_connection(kind: str) -> None:
    with ScriptedServer(drops, drops, says(200, GENERATED)) as server:
        answer = use(kind, server.url, generate)

    assert answer.sequences[0].generated_text == " day"
    assert len(server.calls) == 3


def test_job_is_not_submitted_twice_when_nobody_knows_whether_it_arrived(kind: str) -> None:
    with ScriptedServer(drops, says(202, job_json())) as server, pytest.raises(ConnectionFailed):
        use(kind, server.url, submit)

    assert len(server.calls) == 1


def test_job_is_submitted_again_when_it_cannot_have_arrived(kind: str) -> None:
    server = ScriptedServer(says(202, job_json()))
    server.close()
    policy = RetryPolicy(attempts=3, first_wait_s=0.1, longest_wait_s=0.1)
    began = time.monotonic()

    with pytest.raises(ConnectionFailed) as caught:
        use(kind, server.url, submit, retries=policy)

    assert not caught.value.was_sent
    assert time.monotonic() - began >= 0.1


@pytest.mark.parametrize(("status", "n_calls"), [(500, 1), (501, 1), (502, 2), (504, 2), (400, 1)])
def test_only_what_may_pass_is_tried_again(kind: str, status: int, n_calls: int) -> None:
    policy = RetryPolicy(attempts=2, first_wait_s=0.001)
    with (
        ScriptedServer(says(status, {"error": "no"})) as server,
        pytest.raises(NeodimClientError) as caught,
    ):
        use(kind, server.url, generate, retries=policy)

    assert len(server.calls) == n_calls
    assert isinstance(caught.value, ServerFailure) == (status >= 500)


def test_silent_server_is_given_up(kind: str) -> None:
    def sleeps(_: object) -> None:
        time.sleep(1)

    with ScriptedServer(sleeps) as server, pytest.raises(TimedOut, match="silent"):
        use(kind, server.url, generate, timeout_s=0.1)

    assert len(server.calls) == 1


def test_answer_that_is_cut_is_asked_for_again(kind: str) -> None:
    def cut(handler: Any) -> None:
        says(200, b'{"original_input', Content_Length="1000")(handler)
        handler.close_connection = True

    with ScriptedServer(cut, says(200, GENERATED)) as server:
        use(kind, server.url, generate)

    assert len(server.calls) == 2


def test_failure_names_the_server_and_the_tries(kind: str) -> None:
    policy = RetryPolicy(attempts=3, first_wait_s=0.0)
    server = ScriptedServer(says(200, GENERATED))
    server.close()
    url = server.url
    with pytest.raises(ConnectionFailed, match=f"^{url} cannot be reached: ") as failed:
        use(kind, url, generate, retries=policy)

    assert failed.value.__notes__ == ["after 3 tries"]
