"""What is no proper request is refused with a reason, and never breaks anything."""

from __future__ import annotations

import json

import pytest
from api_client import make_client, request, submission
from scripted_worker import ScriptedWorker

GOOD = json.dumps(request(temperature=1.5)).encode()
BODIES = {
    "empty": b"",
    "blank": b" \n",
    "not JSON": b"hello",
    "cut short": GOOD[:-5],
    "null": b"null",
    "a string": b'"x"',
    "a number": b"5",
    "a list": b"[]",
    "not UTF-8": GOOD.replace(b"count", b"\xff\xfe", 1),
    "UTF-16": GOOD.decode().encode("utf-16"),
    "NaN": GOOD.replace(b"1.5", b"NaN"),
    "Infinity": GOOD.replace(b"1.5", b"-Infinity"),
    "beyond double precision": GOOD.replace(b"1.5", b"1e400"),
    "5,000 digits": GOOD.replace(b"1.5", b"9" * 5000),
    "10,000 deep": b'{"request":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "never closed": b'{"a":' * 10_000,
    "half a pair": GOOD.replace(b"count", b"\\ud83d", 1),
    "half a pair as a name": b'{"\\udc00": 1}',
    "a name twice": GOOD[:-1] + b', "prompt": "x"}',
}


@pytest.fixture
def client(redis_url):
    with ScriptedWorker(redis_url):
        yield make_client(redis_url)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_bodies_that_are_no_json_object_are_refused(client, body):
    neodim = client.post("/generate", data=body, content_type="application/json")
    jobs = client.post("/v1/jobs", data=body, content_type="application/json")

    assert (neodim.status_code, jobs.status_code) == (400, 400)
    assert neodim.json["error"]
    assert jobs.json["message"] == jobs.json["error"]["message"] != ""


def test_a_name_that_occurs_twice_is_named(client):
    response = client.post("/generate", data=BODIES["a name twice"])

    assert response.json["error"].startswith("prompt: ")


@pytest.mark.parametrize(
    ("body", "start"),
    [
        ({"": 1}, '"": is not a known field'),
        ({" ": 1}, '" ": is not a known field'),
        ({"x" * 500: 1}, "x" * 60 + ": is not a known field"),
        ({"temperature": float("nan")}, "temperature: NaN is not a JSON number"),
        ({"stop_strings": ["a", "\udc00"]}, "stop_strings: has half of a surrogate pair"),
    ],
)
def test_the_field_at_fault_is_named_whatever_its_name(client, body, start):
    neodim = client.post("/generate", data=json.dumps({**request(), **body}))
    jobs = client.post("/v1/jobs", json=submission(**body))

    assert neodim.json["error"].startswith(start)
    assert jobs.json["message"].startswith(start)


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", None])
def test_jobs_are_json_by_their_content_type(client, media_type):
    response = client.post(
        "/v1/jobs", data=json.dumps(submission()).encode(), content_type=media_type
    )

    assert response.status_code == 415
    assert response.json["error"]["code"] == "unsupported_media_type"


def test_a_body_above_the_limit_is_too_large(redis_url):
    client = make_client(redis_url, body_limit_bytes=2000)
    padding = b" " * (2000 - len(GOOD))

    fits = client.post("/generate", data=GOOD + padding)
    exceeds = client.post("/generate", data=GOOD + padding + b" ")

    assert fits.status_code == 503
    assert (exceeds.status_code, exceeds.json) == (
        413,
        {"error": "the body is longer than 2000 bytes"},
    )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/generate/", 404),
        ("POST", "//generate", 404),
        ("GET", "/v1/jobs/", 404),
        ("GET", "/generate", 405),
        ("PUT", "/v1/jobs", 405),
        ("POST", "/v1/jobs/x", 405),
        ("BREW", "/generate", 405),
    ],
)
def test_wrong_paths_and_methods_are_errors_in_json(client, method, path, status):
    response = client.open(path, method=method)

    assert response.status_code == status
    assert response.content_type == "application/json"
    assert response.json
    assert ("Allow" in response.headers) == (status == 405)
    assert "Location" not in response.headers


def test_every_answer_has_its_own_request_id(client):
    calls = [("POST", "/generate"), ("POST", "/v1/jobs"), ("GET", "/v1/jobs/x"), ("GET", "/no")]

    ids = [
        client.open(path, method=method).headers["x-request-id"]
        for method, path in calls
        for _ in range(2)
    ]

    assert len(set(ids)) == len(ids)


def test_a_failure_of_our_own_is_told_in_json_without_its_reason(client, monkeypatch):
    client.application.config["PROPAGATE_EXCEPTIONS"] = False
    monkeypatch.setattr("api.synchronous.parse_preference", lambda _: 1 / 0)

    response = client.post("/generate", json=request())

    assert response.status_code == 500
    assert response.json == {"error": "an internal error; the log says more"}


ALEPH_ALPHA = (
    "/complete",
    "/evaluate",
    "/explain",
    "/embed",
    "/semantic_embed",
    "/batch_semantic_embed",
    "/tokenize",
    "/detokenize",
    "/version",
    "/models_available",
    "/models/{name}/tokenizer",
)


def test_the_documentation_lists_every_endpoint(client):
    spec = client.get("/openapi.json").json
    page = client.get("/docs").text

    assert set(spec["paths"]) == {
        "/generate",
        "/chat/completions",
        "/completions",
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/models",
        "/v1/models/{name}",
        "/models",
        "/models/{name}",
        "/v1/jobs",
        "/v1/jobs/{job_id}",
        "/v1/jobs/{job_id}/events",
        "/v1/images/generations",
        "/v1/images/edits",
        "/v1/images/{job_id}/{n}.png",
        "/health/live",
        "/health/ready",
        *(f"{version}{path}" for version in ("", "/v1") for path in ALEPH_ALPHA),
    }
    assert all(path in page for path in spec["paths"])
    assert "repetition_penalty_slope" in page
    assert "http" not in page.replace("https://", "http").split("<style>")[0]
