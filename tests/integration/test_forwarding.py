"""Requests for models of other servers: stand-in servers, a real Redis, the API under gunicorn."""

from __future__ import annotations

import http.client
import json
import threading
from contextlib import ExitStack, closing

import pytest
from forwarding_app import START, create_app
from forwarding_service import SETTINGS, serve, wait_until
from stand_in_model import StandInModel

from api.node.registry import Registry
from api.settings import Settings
from workers.contract.redis_client import connect

CHAT = f"{START}/chat/completions"
BODY = '{"model":  "m", "text": "\u4f60\u597d"}'.encode()


@pytest.fixture(scope="module")
def redis_url(redis_server_url):
    return redis_server_url


@pytest.fixture(scope="module")
def port(redis_url, tmp_path_factory):
    """Of the API under gunicorn and gevent, with two processes."""
    with serve(redis_url, tmp_path_factory.mktemp("api")) as port:
        yield port


@pytest.fixture
def servers(redis_url):
    """Makes servers of model m, registered; `servers("A", "B", mood=...)`."""
    client = connect(redis_url)
    client.flushall()
    with ExitStack() as stack:

        def make(*names, mood="fine", **fields):
            made = [stack.enter_context(StandInModel(name, mood)) for name in names]
            Registry(client).add([each.registration(**fields) for each in made])
            return made

        yield make


@pytest.fixture
def api(redis_url):
    """Flask's own client: no sockets, so that headers and errors are seen as they are made."""
    settings = Settings(redis_url=redis_url, forward_timeout_s=2, **SETTINGS)
    return create_app(settings).test_client()


def ask(port, body=BODY, path=CHAT):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    return connection


def answer(port, body=BODY):
    with closing(ask(port, body)) as connection:
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


def post(api, path=CHAT, body=BODY, **headers):
    headers = {"Content-Type": "application/json", **headers}
    return api.post(path, data=body, headers=headers, buffered=True)


def test_a_body_goes_on_and_an_answer_comes_back_as_they_are(servers, api):
    (alice,) = servers("Alice")

    response = post(api, Accept="text/x", Authorization="Bearer mine", Cookie="mine")

    (call,) = alice.calls
    assert (call.path, call.body) == ("/v1/chat/completions", BODY)
    assert call.headers["Content-Type"] == "application/json"
    assert call.headers["Accept"] == "text/x"
    assert "mine" not in str(call.headers)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert (
        response.data
        == json.dumps({"I am": "Alice", "heard": BODY.decode()}, ensure_ascii=False).encode()
    )


@pytest.mark.parametrize(
    ("call", "kind"),
    [("chat/completions", 0), ("completions", 0), ("images/generations", 1), ("images/edits", 2)],
)
def test_every_call_goes_to_its_own_path(servers, api, call, kind):
    (alice,) = servers("Alice", type=kind)

    response = post(api, f"{START}/{call}")

    assert response.status_code == 200
    assert alice.calls[0].path in (f"/v1/{call}", "/v1/chat/completions")


def test_an_error_of_the_server_is_the_answer(servers, api):
    servers("Alice", mood="refuse")

    response = post(api)

    assert (response.status_code, response.json) == (429, {"code": 1, "message": "Alice is busy"})


def test_nobody_is_asked_for_a_model_that_nobody_registered(servers, api):
    (alice,) = servers("Alice", model="other")

    response = post(api)

    assert response.status_code == 404
    assert alice.calls == []


def test_a_request_that_was_forwarded_is_not_forwarded_again(servers, api):
    (alice,) = servers("Alice")
    post(api)
    mark = {"X-Neodim-Forwarded": alice.calls[0].headers["X-Neodim-Forwarded"]}

    response = post(api, **mark)

    assert response.status_code == 508
    assert response.json["error"]["code"] == "forwarded_already"
    assert len(alice.calls) == 1


def test_a_server_that_is_gone_is_set_aside_and_the_next_one_asked(servers, api):
    gone, alice = servers("Gone", "Alice")
    gone.close()

    names = {post(api).json["I am"] for _ in range(4)}

    assert names == {"Alice"}
    assert len(alice.calls) == 4


def test_a_server_that_does_not_begin_to_answer_is_set_aside_as_well(servers, api, caplog):
    servers("Slow", mood="hang")
    servers("Alice")

    names = {post(api).json["I am"] for _ in range(4)}

    assert names == {"Alice"}
    assert caplog.text.count("is set aside") == 1


def test_when_no_server_is_left_the_client_may_come_again_later(servers, api):
    for each in servers("A", "B"):
        each.close()

    first, second = post(api), post(api)

    assert (first.status_code, second.status_code) == (503, 503)
    assert first.headers["Retry-After"] == "10"
    assert first.json["error"]["code"] == "no_server_left"


def test_nothing_counts_as_busy_after_its_end(servers, api, redis_url):
    servers("Gone")[0].close()
    servers("Alice")
    servers("Cut", mood="cut stream", model="m2")
    post(api)
    post(api, body=b'{"model": "m2"}')

    assert connect(redis_url).keys("neodim:forwarded:*") == []


def test_a_stream_that_breaks_off_ends_with_an_error_event(servers, api):
    servers("Alice", mood="cut stream")

    response = post(api)

    assert response.headers["X-Accel-Buffering"] == "no"
    first, *_, last = response.data.decode().strip().split("\n\n")
    assert first == 'data: {"text": "I am Alice \u4f60\u597d"}'
    assert last.startswith('event: error\ndata: {"code":2041,')


def test_a_stream_comes_as_it_is_made(servers, port):
    (alice,) = servers("Alice", mood="stream")
    with closing(ask(port)) as connection:
        reply = connection.getresponse()
        first = reply.readline()
        alice.release.set()
        rest = reply.read()

    assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert first.decode() == 'data: {"text": "I am Alice \u4f60\u597d"}\n'
    assert rest == b"\ndata: [DONE]\n\n"


def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(servers, port):
    servers("Alice", mood="cut")
    with closing(ask(port)) as connection, pytest.raises(http.client.IncompleteRead):
        connection.getresponse().read()


@pytest.mark.parametrize("mood", ["hang", "stream"])
def test_a_client_that_leaves_ends_its_request_at_the_server(servers, port, redis_url, mood):
    (alice,) = servers("Alice", mood=mood)
    connection = ask(port)
    wait_until(lambda: alice.calls)

    connection.close()
    wait_until(alice.client_left.is_set)

    wait_until(lambda: connect(redis_url).keys("neodim:forwarded:*") == [])
    assert connect(redis_url).keys("neodim:set-aside:*") == []


def test_requests_at_once_go_to_different_servers_over_all_processes(servers, port):
    made = servers(*"ABCD", mood="stream")
    connections = [ask(port) for _ in range(8)]
    replies = [each.getresponse() for each in connections]

    counts = [len(each.calls) for each in made]
    for each in made:
        each.release.set()
    bodies = [reply.read() for reply in replies]

    assert counts == [2, 2, 2, 2]
    assert all(body.endswith(b"[DONE]\n\n") for body in bodies)
    for each in connections:
        each.close()


def test_a_server_that_hangs_delays_no_other_request(servers, port):
    (slow,) = servers("Slow", mood="hang", model="slow")
    servers("Alice")
    waiting = threading.Thread(target=answer, args=(port, b'{"model": "slow"}'))
    waiting.start()

    replies = [answer(port) for _ in range(4)]
    is_waiting = waiting.is_alive()
    slow.release.set()
    waiting.join()

    assert [status for status, _ in replies] == [200] * 4
    assert is_waiting
