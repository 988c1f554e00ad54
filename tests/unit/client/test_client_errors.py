"""Answers that are errors, as the exceptions that they become."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted_server import KINDS, ScriptedServer, job_json, says, streams, use

import neodim_client
from neodim_client import (
    ApiError,
    ConnectionFailed,
    GenerateRequest,
    InvalidAnswer,
    JobCancelled,
    JobError,
    JobFailed,
    JobNotFound,
    MissingCapability,
    NeodimClientError,
    NotFound,
    PromptTooLong,
    QueueFull,
    RequestRejected,
    RetryPolicy,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnknownModel,
)
from neodim_client.answers import Answer, error_of
from neodim_client.jobs import Job

REQUEST = GenerateRequest(prompt="One", generated_tokens_count=1, max_total_tokens=8)


def standard(code: str) -> dict[str, Any]:
    """An error's body under /v1."""
    return {"code": 2003, "message": "no", "error": {"message": "no", "code": code, "param": None}}


def aleph_alpha(code: str) -> dict[str, Any]:
    """An error's body of the completion API."""
    return {"error": "no", "code": code}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": "no"}, RequestRejected),
        (400, standard("invalid_request"), RequestRejected),
        (400, aleph_alpha("INVALID_REQUEST"), RequestRejected),
        (400, standard("prompt_too_long"), PromptTooLong),
        (400, aleph_alpha("MISSING_CAPABILITY"), MissingCapability),
        (401, {"error": "no"}, Unauthorized),
        (403, {"error": "no"}, Unauthorized),
        (404, standard("not_found"), NotFound),
        (404, standard("job_not_found"), JobNotFound),
        (404, aleph_alpha("UNKNOWN_MODEL"), UnknownModel),
        (409, {"error": "no"}, JobCancelled),
        (413, {"error": "no"}, RequestRejected),
        (418, {"error": "no"}, ApiError),
        (429, {"error": "no"}, TooManyRequests),
        (500, standard("out_of_memory"), ServerFailure),
        (503, standard("model_loading"), Unavailable),
        (503, aleph_alpha("QUEUE_FULL"), QueueFull),
        (508, {"error": "no"}, ServerFailure),
    ],
)
def test_class_follows_from_status_and_code(
    status: int, body: dict[str, Any], kind: type[ApiError]
) -> None:
    error = error_of(Answer(status, {}, json.dumps(body).encode()), None)

    assert type(error) is kind
    assert (error.status, error.message, str(error)) == (status, "no", "no")


@pytest.mark.parametrize(
    "content", [b"", b"<html>busy</html>", b"[1]", b"null", b'{"error": null}', b"\xff\xfe"]
)
def test_body_of_another_form_is_shown(content: bytes) -> None:
    error = error_of(Answer(503, {}, content), None)

    assert error.message.startswith("HTTP status 503")
    assert content.decode("utf-8", "replace") in error.message
    assert error.code is None


def test_every_error_is_in_the_one_tree() -> None:
    kinds = [
        each
        for each in vars(neodim_client).values()
        if isinstance(each, type) and issubclass(each, Exception)
    ]

    assert len(kinds) > 15
    assert all(issubclass(each, NeodimClientError) for each in kinds)


@pytest.mark.parametrize("kind", KINDS)
def test_error_says_which_request_and_which_job_it_is_about(kind: str) -> None:
    body = {"error": "job 5-a was cancelled; /v1/jobs/5-a has what was made so far"}
    with (
        ScriptedServer(says(409, body, X_Request_Id="5-a")) as server,
        pytest.raises(JobCancelled) as caught,
    ):
        use(kind, server.url, lambda client: client.generate(REQUEST))

    assert (caught.value.request_id, caught.value.job_id) == ("5-a", "5-a")


@pytest.mark.parametrize("kind", KINDS)
def test_error_of_a_call_about_a_job_names_the_job(kind: str) -> None:
    with (
        ScriptedServer(says(404, standard("job_not_found"), X_Request_Id="other")) as server,
        pytest.raises(JobNotFound) as caught,
    ):
        use(kind, server.url, lambda client: client.jobs.get("a/b"))

    assert server.calls[0].path == "/v1/jobs/a%2Fb"
    assert (caught.value.request_id, caught.value.job_id) == ("other", "a/b")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"sequences": []}', b"\xff"])
def test_good_answer_that_is_no_answer_is_an_error(kind: str, body: bytes) -> None:
    with ScriptedServer(says(200, body)) as server, pytest.raises(InvalidAnswer, match="answer"):
        use(kind, server.url, lambda client: client.generate(REQUEST))

    assert len(server.calls) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_redirect_is_not_followed_with_the_key(kind: str) -> None:
    with (
        ScriptedServer(says(307, b"", Location="http://127.0.0.1:1/")) as server,
        pytest.raises(ApiError) as caught,
    ):
        use(kind, server.url, lambda client: client.generate(REQUEST), api_key="secret")

    assert caught.value.status == 307
    assert server.calls[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("kind", KINDS)
def test_stream_that_is_none_is_an_error(kind: str) -> None:
    with ScriptedServer(says(200, job_json())) as server, pytest.raises(InvalidAnswer):
        use(kind, server.url, lambda client: client.jobs.events("job-1"))


@pytest.mark.parametrize("kind", KINDS)
def test_event_without_its_fields_is_an_error(kind: str) -> None:
    stream = streams(b'id: 1-0\nevent: delta\ndata: {"index": 0}\n\n')
    with ScriptedServer(stream) as server, pytest.raises(InvalidAnswer, match="'text'"):
        use(kind, server.url, lambda client: client.jobs.events("job-1"))


@pytest.mark.parametrize("kind", KINDS)
def test_unreachable_server_is_an_error_of_the_tree(kind: str) -> None:
    server = ScriptedServer(says(200, {}))
    server.close()

    with pytest.raises(ConnectionFailed, match=r"."):
        use(kind, server.url, lambda client: client.models(), retries=RetryPolicy(attempts=1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("127.0.0.1:8787", {}, "base_url: must begin with http"),
        ("http://h", {"api_key": "a\nb"}, "api_key: may have visible ASCII"),
        ("http://h", {"timeout_s": 0}, "timeout_s: must be above 0"),
    ],
)
def test_bad_argument_is_refused_by_name(
    kind: str, url: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        use(kind, url, lambda client: client.models(), **options)


def test_number_that_json_cannot_hold_is_refused_by_its_fields_name() -> None:
    request = GenerateRequest(
        generated_tokens_count=1, max_total_tokens=8, temperature=float("nan")
    )

    with pytest.raises(ValueError, match=r"^temperature: cannot be sent"):
        use("waiting", "http://127.0.0.1:1", lambda client: client.generate(request))


def test_answer_of_a_failed_job_raises_its_code() -> None:
    error = {"code": "out_of_memory", "message": "it does not fit"}
    job = Job.from_json(job_json(state="failed", result=None, error=error))

    with pytest.raises(JobFailed, match="it does not fit") as caught:
        job.answer()

    assert (caught.value.code, caught.value.job_id) == ("out_of_memory", "job-1")


def test_answer_of_a_cancelled_job_raises_though_it_has_a_part_of_one() -> None:
    job = Job.from_json(job_json(state="cancelled", partial=True))

    with pytest.raises(JobCancelled):
        job.answer()
    assert job.is_partial
    assert job.result.sequences[0].generated_text == " day"


def test_answer_of_a_running_job_raises() -> None:
    job = Job.from_json(job_json(state="running", result=None, finished_at=None))

    with pytest.raises(JobError, match="job-1 is running"):
        job.answer()


@pytest.mark.parametrize("kind", KINDS)
def test_page_of_another_server_is_no_version(kind: str) -> None:
    with (
        ScriptedServer(says(200, b"<html>hi</html>")) as server,
        pytest.raises(InvalidAnswer, match="is no version: '<html>hi"),
    ):
        use(kind, server.url, lambda client: client.version())
