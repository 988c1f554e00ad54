"""Completions as the vendor's own client gets them from a running API."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest
import requests
from aleph_alpha_client import (
    AsyncClient,
    BusyError,
    Client,
    CompletionRequest,
    Prompt,
    Text,
    TextControl,
)
from aleph_alpha_client.completion import CompletionSummary, StreamChunk, StreamSummary
from redis_server import running_redis
from scripted_worker import END, MODEL, ScriptedWorker
from test_api_server import LIMIT, running, wait_until

from workers.contract.redis_client import connect

pytestmark = pytest.mark.redis

KEY = "key-1"


@pytest.fixture(scope="module")
def redis_url():
    """Of a server that only these tests use."""
    with running_redis() as url:
        yield url


@pytest.fixture(scope="module")
def host(redis_url, tmp_path_factory):
    """Address of a running API that wants a key, with a worker behind it."""
    settings = {"api_key": (KEY,), "model_wait_s": 0}
    directory = tmp_path_factory.mktemp("api")
    with running(redis_url, directory, **settings) as (port, _), ScriptedWorker(redis_url, hands=3):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=["", "/v1", "/v1/"])
def client(request, host):
    """A client that was given the address in one of the ways that there are."""
    return Client(host=host + request.param, token=KEY)


def asked(prompt="count", **fields):
    return CompletionRequest(prompt=Prompt.from_text(prompt), maximum_tokens=4, **fields)


def streamed(host, request, **others):
    """All items of a stream."""

    async def read():
        async with AsyncClient(host=host, token=KEY, **others) as client:
            return [each async for each in client.complete_with_streaming(request, model=MODEL)]

    return asyncio.run(read())


def test_a_completion_is_answered(client):
    answer = client.complete(asked(), model=MODEL)

    (found,) = answer.completions
    assert found.completion == "0 1 2 3 "
    assert (found.raw_completion, found.completion_tokens, found.log_probs) == (None, None, None)
    assert found.finish_reason == "maximum_tokens"
    assert (answer.num_tokens_prompt_total, answer.num_tokens_generated) == (3, 4)
    assert (answer.model_version, answer.optimized_prompt) == (MODEL, None)


def test_everything_that_can_be_told_is_told(client):
    request = asked(" end ", n=2, tokens=True, log_probs=1, echo=True)

    answer = client.complete(request, model=MODEL)

    assert answer.optimized_prompt == Prompt.from_text("end")
    assert [each.completion for each in answer.completions] == ["end0 1 2 "] * 2
    found = answer.completions[1]
    assert found.raw_completion == f"end0 1 2 {END}"
    assert found.completion_tokens == ["end", "0 ", "1 ", "2 ", END]
    assert found.log_probs == [{}, {"0 ": 0.0}, {"1 ": -1.0}, {"2 ": -2.0}, {END: -3.0}]
    assert found.finish_reason == "end_of_text"
    assert (answer.num_tokens_prompt_total, answer.num_tokens_generated) == (6, 8)


def test_candidates_that_are_not_returned_count(client):
    answer = client.complete(asked(best_of=3), model=MODEL)

    assert len(answer.completions) == 1
    assert (answer.num_tokens_prompt_total, answer.num_tokens_generated) == (9, 12)


def test_nothing_may_be_generated(client):
    prompt = Prompt.from_text("count")

    answer = client.complete(CompletionRequest(prompt=prompt, maximum_tokens=0), model=MODEL)

    assert (answer.completions[0].completion, answer.num_tokens_generated) == ("", 0)


def test_the_asynchronous_client_is_answered_too(host):
    async def ask():
        async with AsyncClient(host=host, token=KEY, nice=True, hosting="aleph-alpha") as client:
            return await client.complete(asked(), model=MODEL)

    assert asyncio.run(ask()).completions[0].completion == "0 1 2 3 "


def test_a_stream_has_chunks_a_summary_for_each_text_and_one_of_all(host):
    items = streamed(host, asked(" count", n=2), nice=True, tags=["a"])

    chunks = [each for each in items if isinstance(each, StreamChunk)]
    texts = ["".join(each.completion for each in chunks if each.index == n) for n in range(2)]
    assert texts == ["0 1 2 3 "] * 2
    assert {each.raw_completion for each in chunks} == {None}
    assert [each.index for each in items if isinstance(each, StreamSummary)] == [0, 1]
    last = items[-1]
    assert isinstance(last, CompletionSummary)
    assert (last.num_tokens_prompt_total, last.num_tokens_generated) == (6, 8)
    assert last.optimized_prompt == Prompt.from_text("count")


def test_the_chunks_of_a_stream_are_the_answer_that_is_none(host):
    request = asked("end", tokens=True, log_probs=1, echo=True)
    (whole,) = Client(host=host, token=KEY).complete(request, model=MODEL).completions

    *chunks, summary, _ = streamed(host, request)

    for name in ("completion", "raw_completion", "completion_tokens", "log_probs"):
        found = getattr(chunks[0], name)
        for each in chunks[1:]:
            found = found + getattr(each, name)
        assert found == getattr(whole, name)
    assert summary.finish_reason == whole.finish_reason


def test_a_failure_in_the_middle_of_a_stream_breaks_the_connection(host):
    with pytest.raises(aiohttp.ClientPayloadError):
        streamed(host, asked("break out_of_memory"))


def test_a_failure_before_any_text_is_a_plain_error_although_a_stream_was_asked_for(host):
    with pytest.raises(ValueError, match="INVALID_REQUEST"):
        streamed(host, asked("fail prompt_too_long"))


def test_a_reader_that_leaves_a_stream_cancels_its_job(host, redis_url):
    async def leave():
        async with AsyncClient(host=host, token=KEY) as client:
            stream = client.complete_with_streaming(asked("hold"), model=MODEL)
            first = await anext(stream)
            await stream.aclose()
            return first

    redis = connect(redis_url)
    before = set(redis.scan_iter(match="neodim:job:*"))

    assert asyncio.run(leave()).completion == "0 "

    (key,) = set(redis.scan_iter(match="neodim:job:*")) - before
    wait_until(lambda: redis.hget(key, "state") == b"cancelled")


@pytest.mark.parametrize(
    ("prompt", "fields", "code", "says"),
    [
        ("count", {"top_p": 1.5}, "INVALID_REQUEST", "top_p: must be at most 1"),
        ("count", {"best_of": 2, "n": 2}, "INVALID_REQUEST", "best_of: must be above n"),
        ("count", {"steering_concepts": ["x"]}, "MISSING_CAPABILITY", "steering_concepts"),
        ("fail missing_capability", {}, "MISSING_CAPABILITY", "it was to fail"),
        ("x" * LIMIT, {}, "INVALID_REQUEST", "longer than"),
    ],
)
def test_what_is_refused_is_a_value_error_at_once(host, prompt, fields, code, says):
    started = time.monotonic()

    with pytest.raises(ValueError, match=says) as found:
        Client(host=host, token=KEY).complete(asked(prompt, **fields), model=MODEL)

    status, body = found.value.args
    assert (status, code in body) == (400, True)
    assert time.monotonic() - started < 5


def test_a_control_outside_of_its_text_is_a_value_error(client):
    prompt = Prompt([Text("Hi", [TextControl(start=1, length=5, factor=0.5)])])

    with pytest.raises(ValueError, match="prompt: item 0: a control from character 1 on, 5 long"):
        client.complete(CompletionRequest(prompt=prompt), model=MODEL)


def test_an_unknown_model_is_not_found(client):
    with pytest.raises(RuntimeError) as found:
        client.complete(asked(), model="no-such-model")

    assert found.value.args[0] == 404
    assert "UNKNOWN_MODEL" in found.value.args[1]


def test_a_wrong_key_is_a_permission_error(host):
    with pytest.raises(PermissionError) as found:
        Client(host=host, token="wrong").complete(asked(), model=MODEL)

    assert found.value.args[0] == 401
    assert '"UNAUTHORIZED"' in found.value.args[1]


def test_a_service_without_a_worker_is_busy(redis_server_url, tmp_path):
    connect(redis_server_url).flushall()
    with running(redis_server_url, tmp_path, model_wait_s=0) as (port, _):
        client = Client(host=f"http://127.0.0.1:{port}", token="any", total_retries=0)

        with pytest.raises(BusyError) as found:
            client.complete(asked(), model=MODEL)

    assert "MODEL_LOADING" in found.value.args[1]


def test_other_clients_may_send_a_string_and_nulls(host):
    names = ("temperature", "n", "log_probs", "best_of", "stop_sequences", "hosting", "stream")
    body = {"model": MODEL, "prompt": "count", "maximum_tokens": 2, **dict.fromkeys(names)}

    reply = requests.post(
        f"{host}/complete?nice=false",
        json=body,
        headers={"Authorization": f"Bearer {KEY}"},
        timeout=30,
    )

    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.json()["completions"][0]["completion"] == "0 1 "
