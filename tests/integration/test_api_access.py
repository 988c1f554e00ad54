from __future__ import annotations

import pytest
from api_client import make_client, read_events, request, submission
from scripted_worker import ScriptedWorker

ENDPOINTS = [
    ("POST", "/generate"),
    ("POST", "/v1/jobs"),
    ("GET", "/v1/jobs/x"),
    ("DELETE", "/v1/jobs/x"),
    ("GET", "/v1/jobs/x/events"),
    ("POST", "/v1/images/generations"),
    ("POST", "/v1/images/edits"),
    ("GET", "/v1/images/x/0.png"),
    ("GET", "/health/ready"),
    ("GET", "/docs"),
    ("GET", "/openapi.json"),
    ("GET", "/no/such/path"),
    ("PUT", "/generate"),
]
MINE = {"Authorization": "Bearer key-1"}
OTHERS = {"Authorization": "bearer key-2"}


@pytest.fixture
def client(redis_url):
    with ScriptedWorker(redis_url):
        yield make_client(redis_url, api_key=("key-1", "key-2"))


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_everything_wants_a_key(client, method, path):
    without = client.open(path, method=method)
    wrong = client.open(path, method=method, headers={"Authorization": "Bearer key-3"})
    basic = client.open(path, method=method, headers={"Authorization": "Basic key-1"})

    assert [each.status_code for each in (without, wrong, basic)] == [401, 401, 401]
    assert without.headers["WWW-Authenticate"].startswith("Bearer")
    assert without.headers["x-request-id"]


def test_a_missing_key_is_told_in_the_shape_of_the_protocol(client):
    neodim = client.post("/generate").json
    standard = client.get("/v1/jobs/x").json

    assert list(neodim) == ["error"]
    assert "API key" in neodim["error"]
    assert standard["error"]["type"] == "authentication_error"
    assert standard["code"] != 0


def test_liveness_and_preflight_want_no_key(client):
    assert client.get("/health/live").status_code == 200
    assert client.options("/generate").status_code == 200


def test_a_job_of_another_key_is_not_found(client):
    submitted = client.post("/v1/jobs", json=submission(prompt="hold"), headers=MINE)
    path = f"/v1/jobs/{submitted.json['id']}"

    others = [
        client.get(path, headers=OTHERS),
        client.delete(path, headers=OTHERS),
        client.get(f"{path}/events", headers=OTHERS),
    ]
    mine = client.get(path, headers=MINE)

    assert [each.status_code for each in others] == [404, 404, 404]
    assert mine.json["state"] in ("queued", "running")


def test_a_key_sees_its_own_job(client):
    job = client.post("/v1/jobs", json=submission(), headers=MINE).json

    events = client.get(f"/v1/jobs/{job['id']}/events", headers=MINE)

    assert read_events(events.data)[-1][1] == "succeeded"


def test_a_key_that_is_no_latin_text_can_be_used(redis_url):
    client = make_client(redis_url, api_key=("ключ",))
    as_sent = "Bearer " + "ключ".encode().decode("latin-1")

    response = client.get("/docs", headers={"Authorization": as_sent})

    assert response.status_code == 200


@pytest.mark.parametrize("origin", ["null", "http://example.org"])
def test_pages_of_any_origin_may_read_answers_and_errors(client, origin):
    headers = {"Origin": origin}

    answer = client.post("/generate", json=request(), headers={**MINE, **headers})
    refused = client.post("/generate", json=request(), headers=headers)

    assert (answer.status_code, refused.status_code) == (200, 401)
    assert answer.headers["Access-Control-Allow-Origin"] == origin
    assert refused.headers["Access-Control-Allow-Origin"] == origin
    assert "Origin" in answer.headers["Vary"]


def test_without_an_origin_nothing_is_said_about_it(client):
    response = client.get("/health/live")

    assert "Access-Control-Allow-Origin" not in response.headers


def test_preflight_allows_what_the_path_takes(client):
    headers = {
        "Origin": "http://example.org",
        "Access-Control-Request-Headers": "authorization, content-type",
    }

    generate = client.options("/generate", headers=headers)
    job = client.options("/v1/jobs/x", headers=headers)
    unknown = client.options("/nowhere", headers=headers)

    assert (generate.status_code, generate.data) == (200, b"")
    assert generate.headers["Access-Control-Allow-Methods"] == "POST, OPTIONS"
    assert generate.headers["Access-Control-Allow-Headers"] == "authorization, content-type"
    assert generate.headers["Access-Control-Allow-Credentials"] == "true"
    assert job.headers["Access-Control-Allow-Methods"] == "DELETE, GET, HEAD, OPTIONS"
    assert unknown.status_code == 200
