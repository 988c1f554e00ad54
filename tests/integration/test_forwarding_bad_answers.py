"""Model servers whose answers are no good HTTP, or break off: what the client and the log get."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import ExitStack, closing

import pytest
from forwarding_app import START, UNSENDABLE, create_app
from forwarding_service import SETTINGS, serve
from raw_model import RawModel, lines

from api.node.registry import Registry
from api.settings import Settings
from workers.contract.redis_client import connect

CHAT = f"{START}/chat/completions"
BODY = b'{"model": "m"}'
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
OK = (lines(JSON, "Content-Length: 2"), b"{}")


@pytest.fixture(scope="module")
def redis_url(redis_server_url):
    return redis_server_url


@pytest.fixture(scope="module")
def log_path(tmp_path_factory):
    return tmp_path_factory.mktemp("log") / "log"


@pytest.fixture(scope="module")
def port(redis_url, log_path, tmp_path_factory):
    with log_path.open("wb") as log, serve(redis_url, tmp_path_factory.mktemp("api"), log) as port:
        yield port


@pytest.fixture
def log(log_path):
    """What the service has said since the test began."""
    before = log_path.stat().st_size if log_path.exists() else 0
    return lambda: log_path.read_bytes()[before:].decode()


@pytest.fixture
def api(redis_url):
    settings = Settings(redis_url=redis_url, forward_timeout_s=1, **SETTINGS)
    return create_app(settings).test_client()


@pytest.fixture
def register(redis_url):
    """Registers a server of model m that answers with these pieces."""
    client = connect(redis_url)
    client.flushall()
    with ExitStack() as stack:

        def make(*pieces, name="A", **behaviour):
            made = stack.enter_context(RawModel(name, pieces, **behaviour))
            Registry(client).add([made.registration()])
            return made

        yield make


def post(api):
    return api.post(CHAT, data=BODY, content_type="application/json", buffered=True)


def ask(port, path=CHAT, method="POST"):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request(method, path, BODY, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read()


BAD_ANSWERS = {
    "a Content-Type in two lines": (lines("Content-Type: text/\r\n plain"), b"{}"),
    "a Content-Type with a NUL": (lines("Content-Type: text/pl\0ain"), b"{}"),
    "a Content-Type that is none": (lines("Content-Type: json"), b"{}"),
    "a line that is no header": (lines(JSON, "what is this", "Content-Length: 2"), b"{}"),
    "a broken first chunk": (lines(JSON, CHUNKED), b"zz\r\n{}\r\n"),
    "a chunk below 0": (lines(JSON, CHUNKED), b"-5\r\n{}\r\n"),
    "another coding": (lines(JSON, "Transfer-Encoding: gzip, chunked"), b"0\r\n\r\n"),
    "a length that is none": (lines(JSON, "Content-Length: two"), b"{}"),
    "two lengths": (lines(JSON, "Content-Length: 2", "Content-Length: 3"), b"{}"),
    "no body of its length": (lines(JSON, "Content-Length: 2"),),
    "a head that breaks off": (b"HTTP/1.1 200 OK\r\nContent-Ty",),
    "no HTTP": (b"\x15\x03\x01\x00\x02\x02P\r\nand\r\nmore\r\n",),
    "status 101": (lines("HTTP/1.1 101 Switching Protocols", JSON), b"{}"),
    "status 103": (lines("HTTP/1.1 103 Early Hints"),),
    "status 201": (lines("HTTP/1.1 201 Created", JSON), b"{}"),
    "status 204": (lines("HTTP/1.1 204 No Content"),),
    "status 205": (lines("HTTP/1.1 205 Reset Content", "Content-Length: 0"),),
    "status 302": (lines("HTTP/1.1 302 Found", "Location: /", "Content-Length: 0"),),
    "status 304": (lines("HTTP/1.1 304 Not Modified"),),
    "status 700": (lines("HTTP/1.1 700 What", JSON), b"{}"),
}


@pytest.mark.parametrize("pieces", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_a_bad_answer_counts_as_none(register, port, log, redis_url, pieces):
    register(*pieces)

    status, body = ask(port)

    assert status == 503
    assert json.loads(body)["code"] == 2051
    assert json.loads(body)["error"]["code"] == "no_server_left"
    assert log().count("\n") == log().count("is set aside") == 1
    assert len(connect(redis_url).keys("neodim:set-aside:*")) == 1
    assert connect(redis_url).keys("neodim:forwarded:*") == []


def test_after_a_bad_answer_the_next_server_is_asked(register, api):
    register(lines("HTTP/1.1 204 No Content"), name="A")
    register(*OK, name="B")

    replies = [post(api) for _ in range(4)]

    assert [(each.status_code, each.data) for each in replies] == [(200, b"{}")] * 4


SLOW = {
    "100 Continue without end": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a head that crawls": (b"HTTP/1.1 200 OK\r\nA: ", b"a"),
    "a chunk's size that crawls": (lines(CHUNKED), b"0"),
}


@pytest.mark.parametrize(("first", "endless"), SLOW.values(), ids=SLOW)
def test_an_answer_must_begin_in_the_given_time_as_a_whole(register, api, caplog, first, endless):
    register(first, endless=endless, pause_s=0.1)
    begin = time.monotonic()

    response = post(api)

    assert response.status_code == 503
    assert time.monotonic() - begin < 3
    assert caplog.text.count("is set aside: no answer in time") == 1


def test_a_body_may_take_longer_than_its_beginning(register, api):
    register(lines("Content-Length: 20"), *[b"a"] * 20, pause_s=0.1)

    response = post(api)

    assert response.data == b"a" * 20


@pytest.mark.parametrize(
    "value", ["10\r\n 20", "1\x010", "1\x000", "1\u00e90", ""], ids=["folded", "1", "NUL", "é", "-"]
)
def test_a_header_that_may_not_be_sent_is_left_out(register, port, log, value):
    names = ("Retry-After", "Cache-Control", "Content-Encoding")
    register(lines(JSON, "Content-Length: 2", *(f"{name}: {value}" for name in names)), b"{}")

    assert ask(port) == (200, b"{}")
    assert log() == ""


@pytest.mark.parametrize("head", [(), ("Content-Type:",), ("Content-Type:  ",)])
def test_a_body_whose_type_is_not_said_is_just_bytes(register, api, head):
    register(lines("Content-Length: 2", *head), b"{}")

    response = post(api)

    assert response.headers["Content-Type"] == "application/octet-stream"


CUT = {
    "shorter than its length": (lines(JSON, "Content-Length: 9"), b"{"),
    "a chunk that breaks off": (lines(JSON, CHUNKED), b"9\r\n{"),
    "a chunk that is broken": (lines(JSON, CHUNKED), b"1\r\n{\r\nzz\r\n"),
    "a chunk that is missing": (lines(JSON, CHUNKED), b"1\r\n{\r\n"),
}


@pytest.mark.parametrize("pieces", CUT.values(), ids=CUT)
def test_an_answer_that_breaks_off_cuts_the_client_with_one_line_in_the_log(
    register, port, log, pieces
):
    register(*pieces, pause_s=0.1)

    with pytest.raises(http.client.IncompleteRead):
        ask(port)

    assert log().count("\n") == log().count("broke off: IncompleteRead") == 1


@pytest.mark.parametrize("framing", [CHUNKED, "Content-Length: 1000"])
def test_a_stream_that_breaks_off_ends_with_an_error_event_however_its_type_is_written(
    register, port, log, framing
):
    first = b"9\r\ndata: 1\n\n\r\n" if framing == CHUNKED else b"data: 1\n\n"
    register(lines("Content-Type: Text/Event-Stream;charset=utf-8", framing), first, pause_s=0.1)

    status, body = ask(port)

    assert status == 200
    assert body.startswith(b'data: 1\n\n\n\nevent: error\ndata: {"code":2041,')
    assert log().count("\n") == log().count("broke off") == 1


@pytest.mark.parametrize("path", UNSENDABLE)
def test_an_answer_that_gunicorn_refuses_is_a_failure_in_the_shape_of_its_path(port, path):
    status, body = ask(port, path, "GET")

    assert status == 500
    assert ("code" in json.loads(body)) == path.startswith("/v1/")
