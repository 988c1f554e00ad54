"""Completions over HTTP, where it matters what exactly goes over the wire."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import sleep

import pytest
from api_client import make_client
from scripted_worker import MODEL, ScriptedWorker
from test_api_server import wait_until

from api import answer_stream
from workers.contract.redis_client import connect

pytestmark = pytest.mark.redis

PATH = "/complete"


@pytest.fixture
def client(redis_url):
    with ScriptedWorker(redis_url, hands=2):
        yield make_client(redis_url, model_wait_s=0)


def body(prompt="count", **fields):
    return {"model": MODEL, "prompt": prompt, "maximum_tokens": 4, **fields}


def test_a_stream_is_lines_of_data_and_no_more(client):
    response = client.post(PATH, json=body(stream=True))

    lines = response.text.split("\n")
    assert response.content_type == "text/event-stream; charset=utf-8"
    assert {line[:6] for line in lines if line} == {"data: "}
    kinds = [json.loads(line[6:])["type"] for line in lines if line]
    assert kinds[-2:] == ["stream_summary", "completion_summary"]
    assert set(kinds[:-2]) == {"stream_chunk"}


def test_silence_behind_the_head_is_broken_by_empty_lines(redis_url, monkeypatch):
    monkeypatch.setattr(answer_stream, "PING_S", 0.05)
    with ScriptedWorker(redis_url):
        client = make_client(redis_url, model_wait_s=0)
        response = client.post(PATH, json=body("hold", stream=True))
        frames = iter(response.response)

        first = [next(frames) for _ in range(3)]

        response.close()
    assert first[0].startswith(b'data: {"type":"stream_chunk"')
    assert first[1:] == [b"\n", b"\n"]


def test_a_head_waits_for_text_however_long_the_line_is(redis_url, monkeypatch):
    monkeypatch.setattr(answer_stream, "PING_S", 0.0)
    with ScriptedWorker(redis_url), ThreadPoolExecutor(1) as pool:
        client = make_client(redis_url, model_wait_s=0)
        held = client.post(PATH, json=body("hold"), headers={"Prefer": "respond-async"})
        path = held.headers["Location"]
        wait_until(lambda: client.get(path).json["state"] == "running")
        ask = partial(
            make_client(redis_url).post, PATH, json=body("fail no_token_left", stream=True)
        )
        answer = pool.submit(ask)
        wait_until(lambda: connect(redis_url).zcard(f"neodim:waiting:{MODEL}") == 1)
        sleep(0.3)
        was_answered = answer.done()

        client.delete(path)
        refused = answer.result()

    assert not was_answered
    assert (refused.status_code, refused.json["code"]) == (400, "INVALID_REQUEST")


def test_a_failure_behind_the_head_is_no_end_of_a_stream(client):
    response = client.post(PATH, json=body("break out_of_memory", stream=True))

    with pytest.raises(ConnectionResetError):
        b"".join(response.response)


@pytest.mark.parametrize(
    "request_",
    [
        {"data": "{", "content_type": "application/json"},
        {"data": "model=x", "content_type": "application/x-www-form-urlencoded"},
        {"json": [1]},
        {"json": {}},
        {"json": body(temperature="hot")},
    ],
)
def test_whatever_is_wrong_with_a_request_is_400_in_the_protocols_shape(client, request_):
    response = client.post("/v1" + PATH, **request_)

    assert (response.status_code, response.content_type) == (400, "application/json")
    assert list(response.json) == ["error", "code"]
    assert response.json["code"] == "INVALID_REQUEST"


@pytest.mark.parametrize("prefix", ["", "/v1"])
@pytest.mark.parametrize(
    "path", ["/steering_concepts", "/translate", "/rerank", "/instructable_embed"]
)
def test_what_is_not_offered_is_not_found(client, prefix, path):
    response = client.post(prefix + path, json={})

    assert (response.status_code, response.json["code"]) == (404, "NOT_FOUND")


def test_embeddings_are_not_found_in_the_shape_of_whose_path_it_is(client):
    theirs, openais = (client.post(f"{prefix}/embeddings", json={}) for prefix in ("", "/v1"))

    assert (theirs.status_code, theirs.json["code"]) == (404, "NOT_FOUND")
    assert (openais.status_code, openais.json["error"]["code"]) == (404, "not_found")


def test_another_method_is_refused_in_the_protocols_shape(client):
    response = client.get(PATH)

    assert (response.status_code, response.json["code"]) == (405, "METHOD_NOT_ALLOWED")


def test_a_missing_key_is_told_in_the_protocols_shape(redis_url):
    response = make_client(redis_url, api_key=("key-1",)).post(PATH, json=body())

    assert (response.status_code, response.json["code"]) == (401, "UNAUTHORIZED")


def test_a_completion_may_be_submitted_as_a_job_and_its_result_is_the_same_answer(client):
    request = body(" count", tokens=True, log_probs=0, echo=True)
    submission = {"protocol": "aleph_alpha", "request": request}

    job = client.post("/v1/jobs", json=submission, headers={"Prefer": "wait=10"}).json

    assert job["state"] == "succeeded"
    assert job["result"] == client.post(PATH, json=request).json
    assert job["result"]["completions"][0]["completion_tokens"][0] == "count"


def test_a_completion_that_nobody_waits_for_becomes_a_job(client):
    response = client.post(PATH, json=body(), headers={"Prefer": "respond-async"})

    assert (response.status_code, response.json["protocol"]) == (202, "aleph_alpha")


def test_a_job_is_no_stream(client):
    submission = {"protocol": "aleph_alpha", "request": body(stream=True)}

    assert "stream: must be false in a job" in client.post("/v1/jobs", json=submission).text


@pytest.mark.parametrize(("reads_pictures", "status"), [(False, 400), (True, 200)])
@pytest.mark.parametrize("path", [PATH, "/evaluate"])
def test_a_body_may_be_longer_where_a_model_reads_pictures(redis_url, path, reads_pictures, status):
    request = {**body("x" * 2000), "completion_expected": "y"}
    with ScriptedWorker(redis_url, reads_pictures=reads_pictures):
        client = make_client(redis_url, body_limit_bytes=1024, image_body_limit_bytes=4096)

        response = client.post(path, json=request)

    assert response.status_code == status, response.text
