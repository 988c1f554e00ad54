"""Streams as gunicorn sends them: to clients that leave, and to hundreds at once."""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
import time
from contextlib import ExitStack, closing

import pytest
from redis_server import running_redis
from scripted_worker import MODEL, ScriptedWorker
from test_api_server import running, wait_until

from workers.contract.redis_client import connect

pytestmark = pytest.mark.redis

N_STREAMS = 200
MAX_CONNECTIONS = 40
MAX_MEMORY_MIB = 300


@pytest.fixture(scope="module")
def redis_url():
    """Of a server that only these tests use, whose connections can thus be counted."""
    with running_redis() as url:
        yield url


@pytest.fixture(scope="module")
def server(redis_url, tmp_path_factory):
    """Port and process of a running API, with a worker behind it that does one job at a time."""
    with running(redis_url, tmp_path_factory.mktemp("api")) as made, ScriptedWorker(redis_url):
        yield made


@pytest.fixture(scope="module")
def redis(redis_url):
    return connect(redis_url)


@pytest.fixture
def port(server, redis):
    """Port of the running API; nothing runs behind it, and no job is remembered."""
    wait_until(lambda: redis.zcard("neodim:leases") == 0)
    for key in redis.keys("neodim:job:*"):
        redis.delete(key)
    return server[0]


def ask(port, content="count", **fields):
    """A connection on which a chat was asked for."""
    messages = [{"role": "user", "content": content}]
    body = {"model": MODEL, "messages": messages, "max_tokens": 4, **fields}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(
        "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
    )
    return connection


def states(redis):
    return sorted(redis.hget(key, "state").decode() for key in redis.keys("neodim:job:*"))


def memory_mib(pid):
    """Resident memory of a process and its children."""
    listed = subprocess.check_output(["ps", "-o", "rss=", "--pid", str(pid), "--ppid", str(pid)])
    return sum(map(int, listed.split())) / 1024


def test_text_arrives_while_it_is_made(port, redis):
    with closing(ask(port, "hold", stream=True)) as connection:
        reply = connection.getresponse()
        lines = [reply.readline() for _ in range(3)]

        found = states(redis)

    assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert b'"content":"0 "' in lines[2]
    assert found == ["running"]


def test_a_client_that_leaves_in_the_middle_of_a_stream_cancels_its_job(port, redis):
    connection = ask(port, "hold", stream=True)
    reply = connection.getresponse()
    for _ in range(3):
        reply.readline()

    reply.close()
    connection.close()

    wait_until(lambda: states(redis) == ["cancelled"])


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_the_line_cancels_its_job(port, redis, stream):
    with closing(ask(port, "hold", stream=True)) as held:
        held.getresponse()
        connection = ask(port, stream=stream)
        wait_until(lambda: states(redis) == ["queued", "running"])

        connection.close()

        wait_until(lambda: states(redis) == ["cancelled", "running"])
    wait_until(lambda: states(redis) == ["cancelled", "cancelled"])


def test_a_refusal_by_the_worker_is_plain_json_although_a_stream_was_asked_for(port):
    with closing(ask(port, "fail template_refused", stream=True)) as connection:
        reply = connection.getresponse()
        body = json.loads(reply.read())

    assert (reply.status, reply.headers["Content-Type"]) == (400, "application/json")
    assert int(reply.headers["Content-Length"]) > 0
    assert body["error"]["code"] == "template_refused"


def test_a_connection_can_be_used_again_behind_a_stream(port):
    with closing(ask(port, stream=True)) as connection:
        first = connection.getresponse().read()
        connection.request("GET", "/health/live")

        assert connection.getresponse().status == 200
    assert first.endswith(b"data: [DONE]\n\n")


def test_hundreds_of_streams_need_few_connections_and_little_memory(server, port, redis):
    """They wait behind one that is held, and then all have their texts."""
    counts = []
    bodies = []

    def read(connection):
        bodies.append(connection.getresponse().read())

    with ExitStack() as stack:
        held = stack.enter_context(closing(ask(port, "hold", stream=True)))
        held.getresponse()
        made = [stack.enter_context(closing(ask(port, stream=True))) for _ in range(N_STREAMS)]
        wait_until(lambda: redis.zcard(f"neodim:waiting:{MODEL}") == N_STREAMS)
        readers = [threading.Thread(target=read, args=(each,)) for each in made]
        for reader in readers:
            reader.start()
        time.sleep(1)
        counts.append(len(redis.client_list()))
        memory = memory_mib(server[1].pid)
        held.close()
        while any(reader.is_alive() for reader in readers):
            counts.append(len(redis.client_list()))
            time.sleep(0.02)
        memory = max(memory, memory_mib(server[1].pid))

    assert [body.count(b"data: [DONE]") for body in bodies] == [1] * N_STREAMS
    assert all(body.count(b'"content":"1 2 "') == 1 for body in bodies)
    assert max(counts) < MAX_CONNECTIONS
    assert memory < MAX_MEMORY_MIB
