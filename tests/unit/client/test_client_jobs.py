"""Jobs: submitted, waited for, followed over broken connections, cancelled."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from scripted_server import (
    KINDS,
    SWIFT,
    ScriptedServer,
    drops,
    frame,
    job_json,
    says,
    streams,
    use,
)

from neodim_client import (
    BrokenStream,
    Client,
    CompletionRequest,
    EvaluationRequest,
    GenerateRequest,
    JobEnded,
    JobNotFound,
    JobState,
    Progress,
    Prompt,
    RetryPolicy,
    StateChanged,
    TextAdded,
    TimedOut,
)
from neodim_client.jobs import Job

pytestmark = pytest.mark.parametrize("kind", KINDS)

REQUEST = GenerateRequest(prompt="One", generated_tokens_count=1, max_total_tokens=8)
QUEUED = job_json(
    state="queued", result=None, started_at=None, finished_at=None, attempt=0, worker=None
)
FRAMES = [
    frame(1, "state", {"state": "running"}),
    frame(2, "delta", {"index": 0, "text": "one\u2028\U0001f600 "}),
    frame(3, "delta", {"index": 1, "text": "two "}),
    frame(4, "later_kind", {"what": "ever"}),
    frame(5, "succeeded", job_json()),
]


def events(client: Any) -> Any:
    return client.jobs.events("job-1")


def told(found: list[Any]) -> list[Any]:
    """What events say, without the job at the end."""
    return [each.id if isinstance(each, JobEnded) else each for each in found]


EXPECTED = [
    StateChanged("1-0", JobState.RUNNING),
    TextAdded("2-0", 0, "one\u2028\U0001f600 "),
    TextAdded("3-0", 1, "two "),
    "5-0",
]


@pytest.mark.parametrize(
    ("request_", "options", "body"),
    [
        (REQUEST, {}, {"protocol": "neodim", "request": REQUEST.to_json()}),
        (
            CompletionRequest(Prompt.from_text("a")),
            {"model": "m"},
            {
                "protocol": "aleph_alpha",
                "request": {**CompletionRequest(Prompt.from_text("a")).to_json(), "model": "m"},
            },
        ),
        (
            EvaluationRequest(Prompt.from_text("a"), "b"),
            {"model": "m"},
            {
                "protocol": "aleph_alpha_evaluation",
                "request": {
                    **EvaluationRequest(Prompt.from_text("a"), "b").to_json(),
                    "model": "m",
                },
            },
        ),
        ({"messages": []}, {"protocol": "chat"}, {"protocol": "chat", "request": {"messages": []}}),
    ],
)
def test_request_is_submitted_with_its_protocol(
    kind: str, request_: Any, options: Any, body: Any
) -> None:
    with ScriptedServer(says(202, QUEUED)) as server:
        job = use(kind, server.url, lambda client: client.jobs.submit(request_, **options))

    (call,) = server.calls
    assert (call.method, call.path) == ("POST", "/v1/jobs")
    assert call.json == {**body, "request": {**body["request"], **_as_sent(body["request"])}}
    assert (job.id, job.state, job.started_at, job.result) == ("job-1", "queued", None, None)


def _as_sent(request: dict[str, Any]) -> dict[str, Any]:
    """Sequences of JSON are lists."""
    return {name: list(value) for name, value in request.items() if isinstance(value, tuple)}


@pytest.mark.parametrize(
    ("request_", "field"), [(CompletionRequest(Prompt.from_text("a")), "model"), ({}, "protocol")]
)
def test_submission_that_lacks_something_is_refused(kind: str, request_: Any, field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        use(kind, "http://127.0.0.1:1", lambda client: client.jobs.submit(request_))


def test_job_is_read(kind: str) -> None:
    with ScriptedServer(says(200, job_json())) as server:
        job = use(kind, server.url, lambda client: client.jobs.get("job-1"))

    assert job.created_at == datetime(2026, 12, 1, 10, tzinfo=UTC)
    assert job.progress == Progress(1, 1, "tokens")
    assert job.answer().sequences[0].generated_text == " day"
    assert job.state.is_ended


def test_job_of_another_protocol_keeps_its_json(kind: str) -> None:
    steps = {"steps_done": 3, "steps_expected": 30}
    body = job_json(protocol="image_generation", result={"data": [1]}, progress=steps)
    with ScriptedServer(says(200, body)) as server:
        job = use(kind, server.url, lambda client: client.jobs.get("job-1"))

    assert job.answer() == {"data": [1]}
    assert job.progress == Progress(3, 30, "steps")


def test_job_is_waited_for(kind: str) -> None:
    running = job_json(state="running", result=None, finished_at=None)
    looks = (says(200, QUEUED), drops, says(200, running), says(503, {}), says(200, job_json()))
    with ScriptedServer(*looks) as server:
        job = use(kind, server.url, lambda client: client.jobs.wait("job-1"))

    assert job.state is JobState.SUCCEEDED
    assert {call.path for call in server.calls} == {"/v1/jobs/job-1"}
    assert len(server.calls) == 5


def test_wait_may_be_bounded(kind: str) -> None:
    with ScriptedServer(says(200, QUEUED)) as server, pytest.raises(TimedOut) as caught:
        use(kind, server.url, lambda client: client.jobs.wait("job-1", timeout_s=0.2))

    assert str(caught.value) == "job job-1 is still queued after 0.2 s"
    assert caught.value.job_id == "job-1"
    assert len(server.calls) > 1


def test_job_is_cancelled(kind: str) -> None:
    with ScriptedServer(says(200, job_json(state="cancelled", partial=True))) as server:
        job = use(kind, server.url, lambda client: client.jobs.cancel("job-1"))

    assert server.calls[0].method == "DELETE"
    assert (job.state, job.is_partial) == (JobState.CANCELLED, True)


def test_events_are_told_to_the_jobs_end(kind: str) -> None:
    with ScriptedServer(streams(b":\n\n", *FRAMES)) as server:
        found = use(kind, server.url, events)

    assert told(found) == EXPECTED
    assert found[-1].job.answer().sequences[0].generated_text == " day"
    assert "Last-Event-ID" not in server.calls[0].headers


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("at", range(0, len(b"".join(FRAMES)), 131))
def test_no_event_is_missing_or_repeated_wherever_the_stream_breaks(
    kind: str, at: int, is_whole: bool
) -> None:
    whole = b"".join(FRAMES)
    n_known = whole[:at].count(b"\n\n")
    rest = streams(b":\n\n", *FRAMES[n_known:])
    with ScriptedServer(
        streams(b":\n\n", whole[:at] or b":\n\n", is_whole=is_whole),
        drops,
        says(503, {"error": "it is started again"}),
        rest,
    ) as server:
        found = use(kind, server.url, events)

    assert told(found) == EXPECTED
    place = f"{n_known}-0" if n_known else None
    assert [call.headers.get("Last-Event-ID") for call in server.calls] == [None, *[place] * 3]


def test_events_begin_behind_a_known_one(kind: str) -> None:
    with ScriptedServer(streams(FRAMES[-1])) as server:
        use(kind, server.url, lambda client: client.jobs.events("job-1", after="4-0"))

    assert server.calls[0].headers["Last-Event-ID"] == "4-0"


def test_stream_that_brings_nothing_again_and_again_is_given_up(kind: str) -> None:
    policy = RetryPolicy(attempts=4, first_wait_s=0.001, longest_wait_s=0.001)
    with (
        ScriptedServer(streams(FRAMES[0]), streams(b":\n\n", is_whole=False)) as server,
        pytest.raises(BrokenStream, match="job-1 break off") as caught,
    ):
        use(kind, server.url, events, retries=policy)

    assert caught.value.job_id == "job-1"
    assert len(server.calls) == 4


def test_stream_that_brings_something_each_time_is_never_given_up(kind: str) -> None:
    policy = RetryPolicy(attempts=2, first_wait_s=0.001, longest_wait_s=0.001)
    deltas = [frame(n, "delta", {"index": 0, "text": f"{n} "}) for n in range(1, 30)]
    replies = [streams(each, is_whole=n % 2 == 0) for n, each in enumerate(deltas)]
    with ScriptedServer(*replies, streams(frame(30, "succeeded", job_json()))) as server:
        found = use(kind, server.url, events, retries=policy)

    assert "".join(each.text for each in found[:-1]) == "".join(f"{n} " for n in range(1, 30))


def test_job_that_is_gone_when_its_stream_is_taken_up_is_an_error(kind: str) -> None:
    gone = says(404, {"code": 2022, "message": "no", "error": {"code": "job_not_found"}})
    with ScriptedServer(streams(FRAMES[0]), gone) as server, pytest.raises(JobNotFound):
        use(kind, server.url, events)


def test_leaving_a_stream_closes_its_connection(kind: str) -> None:
    has_left = threading.Event()

    def endless(handler: Any) -> None:
        streams(FRAMES[0], is_whole=False)(handler)
        try:
            for _ in range(1000):
                handler.wfile.write(b"3\r\n:\n\n\r\n")
                threading.Event().wait(0.01)
        except OSError:
            has_left.set()

    with ScriptedServer(endless) as server:
        _leave_behind_first_event(kind, server.url)

        assert has_left.wait(10)


def _leave_behind_first_event(kind: str, url: str) -> None:
    if kind == "waiting":
        client = Client(url, retries=SWIFT)
        stream = client.jobs.events("job-1")
        next(stream)
        stream.close()
        client.close()
        return

    async def leave(client: Any) -> None:
        stream = client.jobs.events("job-1")
        await anext(stream)
        await stream.aclose()

    use("asyncio", url, leave)


def test_jobs_can_be_waited_for_side_by_side(kind: str) -> None:
    looks = (says(200, QUEUED), says(200, QUEUED), says(200, job_json()))
    with ScriptedServer(*looks) as server:
        jobs = _wait_for_two(kind, server.url)

    assert [job.state for job in jobs] == [JobState.SUCCEEDED] * 2
    assert {call.path for call in server.calls} == {"/v1/jobs/a", "/v1/jobs/b"}


def _wait_for_two(kind: str, url: str) -> list[Any]:
    if kind == "waiting":
        with Client(url, retries=SWIFT) as client, ThreadPoolExecutor() as pool:
            return list(pool.map(client.jobs.wait, ["a", "b"]))

    async def wait(client: Any) -> Any:
        return await asyncio.gather(client.jobs.wait("a"), client.jobs.wait("b"))

    return list(use(kind, url, wait))


def test_job_itself_can_be_asked_for_anew(kind: str) -> None:
    job = Job.from_json(job_json())
    with ScriptedServer(says(200, job_json(attempt=2))) as server:
        assert use(kind, server.url, lambda client: client.jobs.get(job)).attempt == 2
