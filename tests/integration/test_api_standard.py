"""Chat and completions over HTTP, with a worker that does as its prompt says."""

from __future__ import annotations

import json
import threading
import time

import pytest
from api_client import make_client
from scripted_worker import MODEL, ScriptedWorker

from api import answer_stream
from workers.contract.redis_client import connect

pytestmark = pytest.mark.redis

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


@pytest.fixture
def client(redis_url):
    with ScriptedWorker(redis_url, hands=3):
        yield make_client(redis_url, model_wait_s=0)


def chat(content="count", **fields):
    messages = [{"role": "user", "content": content}]
    return {"model": MODEL, "messages": messages, "max_tokens": 4, **fields}


def completion(prompt="count", **fields):
    return {"model": MODEL, "prompt": prompt, "max_tokens": 4, **fields}


def events(response):
    """What each event of a stream says; an error's is told apart by its kind."""
    found = []
    for frame in response.text.split("\n\n"):
        lines = [line for line in frame.splitlines() if not line.startswith(":")]
        if lines:
            kind = lines[0].removeprefix("event: ") if lines[0].startswith("event") else "data"
            said = lines[-1].removeprefix("data: ")
            found.append((kind, said if said == "[DONE]" else json.loads(said)))
    return found


def text_of(chunks, index=0):
    choices = [choice for _, chunk in chunks[:-1] for choice in chunk["choices"]]
    return "".join(
        each.get("text") or each.get("delta", {}).get("content") or ""
        for each in choices
        if each["index"] == index
    )


def states(redis_url):
    redis = connect(redis_url)
    found = [redis.hget(key, "state") for key in redis.scan_iter(match="neodim:job:*")]
    return sorted(each.decode() for each in found)


def until(is_so):
    for _ in range(1000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


@pytest.mark.parametrize("path", [CHAT, "/chat/completions"])
def test_a_chat_is_answered(client, path):
    response = client.post(path, json=chat())

    assert (response.status_code, response.content_type) == (200, "application/json")
    assert (response.json["code"], response.json["message"]) == (0, "success")
    assert response.json["choices"][0]["message"]["content"] == "0 1 2 3 "
    assert response.json["usage"]["completion_tokens"] == 4
    assert response.json["id"] == f"chatcmpl-{response.headers['x-request-id']}"


@pytest.mark.parametrize("path", [COMPLETIONS, "/completions"])
def test_a_completion_is_answered(client, path):
    response = client.post(path, json=completion())

    assert response.json["choices"][0]["text"] == "0 1 2 3 "
    assert response.json["object"] == "text_completion"


@pytest.mark.parametrize(("path", "body"), [(CHAT, chat()), (COMPLETIONS, completion())])
def test_a_stream_adds_up_to_the_plain_answer(client, path, body):
    plain = client.post(path, json=body).json

    response = client.post(path, json={**body, "stream": True})

    chunks = events(response)
    assert response.content_type == "text/event-stream; charset=utf-8"
    assert text_of(chunks) == "0 1 2 3 "
    assert chunks[-1] == ("data", "[DONE]")
    assert chunks[-2][1]["choices"][0]["finish_reason"] == "length"
    assert chunks[-2][1]["usage"] == plain["usage"]


def test_text_that_is_held_back_comes_with_its_log_probabilities(client):
    response = client.post(CHAT, json=chat(stream=True, logprobs=True, top_logprobs=1))

    choices = [chunk["choices"][0] for _, chunk in events(response)[:-1]]
    told = [
        (each["delta"]["content"], [token["token"] for token in each["logprobs"]["content"]])
        for each in choices
        if each["logprobs"]
    ]
    assert told == [("0 ", ["0 "]), ("1 2 ", ["1 ", "2 "]), ("3 ", ["3 "])]


def test_plain_log_probabilities_are_those_of_the_stream(client):
    fields = {"logprobs": True, "top_logprobs": 1, "n": 2}
    plain = client.post(CHAT, json=chat(**fields)).json

    chunks = events(client.post(CHAT, json=chat(stream=True, **fields)))

    for choice in plain["choices"]:
        streamed = [
            token
            for _, chunk in chunks[:-1]
            for each in chunk["choices"]
            if each["index"] == choice["index"] and each["logprobs"]
            for token in each["logprobs"]["content"]
        ]
        assert streamed == choice["logprobs"]["content"]
        assert len(streamed) == 4


def test_three_texts_are_streamed_beside_each_other(client):
    chunks = events(client.post(CHAT, json=chat(n=3, stream=True)))

    assert [text_of(chunks, index) for index in range(3)] == ["0 1 2 3 "] * 3
    choices = [chunk["choices"][0] for _, chunk in chunks[:-1]]
    assert [each["index"] for each in choices if each["finish_reason"]] == [0, 1, 2]
    roles = [each["index"] for each in choices if each.get("delta", {}).get("role")]
    assert roles == [0, 1, 2]
    assert [each for _, each in chunks].count("[DONE]") == 1


def test_the_usage_comes_once_more_when_it_is_asked_for(client):
    body = chat(stream=True, stream_options={"include_usage": True})

    *_, last, extra, done = events(client.post(CHAT, json=body))

    assert (extra[1]["choices"], extra[1]["usage"]) == ([], last[1]["usage"])
    assert done[1] == "[DONE]"


def test_prompts_are_answered_in_their_order(client):
    response = client.post(COMPLETIONS, json=completion(["a", "b", "c"], n=2))

    assert [each["index"] for each in response.json["choices"]] == list(range(6))
    assert response.json["usage"]["completion_tokens"] == 24


def test_prompts_are_streamed_beside_each_other_and_end_once(client):
    chunks = events(client.post(COMPLETIONS, json=completion(["a", "b"], stream=True)))

    assert [text_of(chunks, index) for index in range(2)] == ["0 1 2 3 "] * 2
    assert [each for _, each in chunks].count("[DONE]") == 1
    assert chunks[-2][1]["usage"]["completion_tokens"] == 8


def test_the_best_are_kept_and_all_are_counted(client):
    response = client.post(COMPLETIONS, json=completion(n=1, best_of=3))

    assert len(response.json["choices"]) == 1
    assert response.json["usage"]["completion_tokens"] == 12


def test_nothing_is_generated_where_nothing_is_asked_for(client):
    plain = client.post(COMPLETIONS, json=completion(max_tokens=0))
    chunks = events(client.post(COMPLETIONS, json=completion(max_tokens=0, stream=True)))

    assert plain.json["choices"][0]["text"] == ""
    assert [chunk["choices"][0]["finish_reason"] for _, chunk in chunks[:-1]] == ["length"]


REFUSED = {
    "a bad value": (CHAT, chat(temperature=-1), "temperature", "invalid_request"),
    "an unknown field": (CHAT, chat(no_such_field=1), "no_such_field", "invalid_request"),
    "tools": (CHAT, chat(tools=[{}]), "tools", "unsupported_parameter"),
    "a suffix": (COMPLETIONS, completion(suffix="x"), "suffix", "unsupported_parameter"),
    "too many texts": (CHAT, chat(n=257), "n", "invalid_request"),
    "too long a text": (CHAT, chat(max_tokens=512), "max_tokens", "invalid_request"),
    "too many candidates": (COMPLETIONS, completion(best_of=257), "best_of", "invalid_request"),
    "no messages": (CHAT, chat(messages=[]), "messages", "invalid_request"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body", "param", "code"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_plain_json_that_both_worlds_read(
    client, path, body, param, code, stream
):
    response = client.post(path, json={**body, "stream": stream})

    assert (response.status_code, response.content_type) == (400, "application/json")
    error = response.json["error"]
    assert (error["param"], error["code"]) == (param, code)
    assert error["type"] == "invalid_request_error"
    assert response.json["code"] >= 2001
    assert response.json["message"] == error["message"]
    assert error["message"].startswith(f"{param}: ")


@pytest.mark.parametrize("stream", [False, True])
def test_an_unknown_model_is_404_and_the_known_ones_are_named(client, stream):
    for path, body in ((CHAT, chat()), (COMPLETIONS, completion())):
        response = client.post(path, json={**body, "model": "no-such-model", "stream": stream})

        assert (response.status_code, response.content_type) == (404, "application/json")
        assert response.json["error"]["code"] == "unknown_model"
        assert MODEL in response.json["message"]


def test_without_a_worker_a_client_may_come_again_later(redis_url):
    client = make_client(redis_url, model_wait_s=0)

    for stream in (False, True):
        response = client.post(CHAT, json=chat(stream=stream))

        assert (response.status_code, response.content_type) == (503, "application/json")
        assert int(response.headers["Retry-After"]) > 0
        assert response.json["error"]["type"] == "server_error"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("code", "status"),
    [("template_refused", 400), ("prompt_too_long", 400), ("out_of_memory", 500), ("x", 500)],
)
def test_a_failure_before_any_text_is_plain_json(client, code, status, stream):
    response = client.post(CHAT, json=chat(f"fail {code}", stream=stream))

    assert (response.status_code, response.content_type) == (status, "application/json")
    assert (response.json["error"]["code"], response.json["message"]) == (code, "it was to fail")


def test_a_failure_behind_some_text_is_an_event_and_the_end(client):
    response = client.post(CHAT, json=chat("break out_of_memory", stream=True))

    *told, (kind, said) = events(response)
    assert response.status_code == 200
    assert [chunk["choices"][0]["delta"].get("content") for _, chunk in told] == [None, "0 "]
    assert kind == "error"
    assert (said["error"]["code"], said["message"]) == ("out_of_memory", "it was to break")


@pytest.mark.parametrize("prompts", [["fail out_of_memory", "hold"], ["hold", "break x", "hold"]])
def test_a_prompt_that_fails_in_a_stream_cancels_the_others(client, redis_url, prompts):
    response = client.post(COMPLETIONS, json=completion(prompts, stream=True))

    assert response.status_code == 500 or events(response)[-1][0] == "error"
    expected = ["cancelled"] * (len(prompts) - 1) + ["failed"]
    until(lambda: states(redis_url) == expected)


def test_a_prompt_that_fails_cancels_those_behind_it(client, redis_url):
    response = client.post(COMPLETIONS, json=completion(["fail prompt_too_long", "hold"]))

    assert response.status_code == 400
    until(lambda: states(redis_url) == ["cancelled", "failed"])


@pytest.mark.parametrize("fields", [{}, {"stream": True}])
def test_a_job_that_somebody_else_cancels_is_not_to_be_tried_again(client, redis_url, fields):
    redis = connect(redis_url)

    def cancel_when_running():
        until(lambda: redis.zcard("neodim:leases"))
        (job_id,) = redis.zrange("neodim:leases", 0, -1)
        other = client.application.test_client()
        if fields:
            until(
                lambda: other.get(f"/v1/jobs/{job_id.decode()}").json["progress"][
                    "tokens_generated"
                ]
            )
        other.delete(f"/v1/jobs/{job_id.decode()}")

    thread = threading.Thread(target=cancel_when_running)
    thread.start()
    response = client.post(CHAT, json=chat("hold", **fields))
    body = response.text
    thread.join()

    if fields:
        assert events(response)[-1][1]["error"]["code"] == "job_cancelled"
        assert "[DONE]" not in body
    else:
        assert response.status_code == 409
        assert response.headers["x-should-retry"] == "false"
        assert response.json["error"]["code"] == "job_cancelled"


@pytest.mark.parametrize(
    ("path", "body", "protocol"),
    [(CHAT, chat(), "chat"), (COMPLETIONS, completion(), "completion")],
)
def test_a_client_may_prefer_a_job(client, path, body, protocol):
    accepted = client.post(path, json=body, headers={"Prefer": "respond-async"})
    answer = client.post(path, json=body, headers={"Prefer": "wait=30"})

    job = client.get(accepted.headers["Location"]).json
    assert (accepted.status_code, accepted.json["protocol"]) == (202, protocol)
    assert answer.status_code == 200
    assert answer.headers["Preference-Applied"] == "wait=30"
    until(lambda: client.get(accepted.headers["Location"]).json["state"] == "succeeded")
    job = client.get(accepted.headers["Location"]).json
    assert job["result"]["choices"] == answer.json["choices"]


def test_a_client_that_waits_for_a_while_gets_the_job_then(client):
    response = client.post(CHAT, json=chat("hold"), headers={"Prefer": "wait=1"})

    assert (response.status_code, response.json["state"]) == (202, "running")
    client.delete(response.headers["Location"])


def test_a_job_is_not_streamed(client):
    response = client.post(CHAT, json=chat(stream=True), headers={"Prefer": "wait=1"})

    assert (response.status_code, response.json["error"]["param"]) == (400, "stream")


@pytest.mark.parametrize(
    ("protocol", "body"), [("chat", chat()), ("completion", completion(echo=True, logprobs=1))]
)
def test_a_chat_or_completion_may_be_submitted_as_a_job(client, protocol, body):
    submitted = client.post("/v1/jobs", json={"protocol": protocol, "request": body})

    path = submitted.headers["Location"]
    until(lambda: client.get(path).json["state"] == "succeeded")
    job = client.get(path).json
    assert job["result"]["choices"][0]["finish_reason"] == "length"


def test_a_long_line_is_waited_in_with_comments(redis_url, monkeypatch):
    monkeypatch.setattr(answer_stream, "PING_S", 0.05)
    with ScriptedWorker(redis_url):
        client = make_client(redis_url, model_wait_s=0)
        held = client.post(CHAT, json=chat("hold"), headers={"Prefer": "respond-async"})
        response = client.post(CHAT, json=chat(stream=True))
        frames = iter(response.response)
        first = [next(frames) for _ in range(3)]

        client.delete(held.headers["Location"])
        rest = b"".join(frames)

    assert first[0].startswith(b'data: {"id":"chatcmpl-')
    assert first[1:] == [b": ping\n\n"] * 2
    assert rest.endswith(b"data: [DONE]\n\n")
    assert b'"content":"0 "' in rest


def test_a_reader_that_leaves_a_stream_cancels_its_jobs(client, redis_url):
    response = client.post(COMPLETIONS, json=completion(["hold", "hold"], stream=True))
    next(iter(response.response))

    response.close()

    until(lambda: states(redis_url) == ["cancelled"] * 2)


def test_a_stream_that_was_read_to_its_end_cancels_nothing(client, redis_url):
    response = client.post(CHAT, json=chat(stream=True))
    response.get_data()

    response.close()

    assert states(redis_url) == ["succeeded"]
