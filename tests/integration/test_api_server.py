"""The API as gunicorn runs it: sockets, chunks, clients that leave or lie."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager

import pytest
from api_client import read_events, request, submission
from scripted_worker import MODEL, ScriptedWorker

from workers.contract.redis_client import connect
from workers.contract.settings import SETTINGS_PATH_VARIABLE, Settings, write_settings

LIMIT = 4096


@pytest.fixture(scope="module")
def redis_url(redis_server_url):
    """One for all tests here: a server takes a second to start."""
    connect(redis_server_url).flushall()
    return redis_server_url


@pytest.fixture(scope="module")
def server(redis_url, tmp_path_factory):
    """Port of a running API, with a worker behind it that does one job at a time."""
    with running(redis_url, tmp_path_factory.mktemp("api")) as (port, _), ScriptedWorker(redis_url):
        yield port


@contextmanager
def running(redis_url, directory, **others):
    """A running API: its port and its process."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    limits = {"body_limit_bytes": LIMIT, **others}
    settings = Settings(redis_url=redis_url, model_name=MODEL, listen_port=port, **limits)
    path = directory / "settings.json"
    write_settings(settings, path)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(SETTINGS_PATH_VARIABLE, str(path))
        command = [sys.executable, "-m", "gunicorn", "--config", "python:api.gunicorn_config"]
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log)
    try:
        wait_until(lambda: answers(port))
        yield port, process
    finally:
        process.terminate()
        process.wait()


def wait_until(is_so):
    for _ in range(1000):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


def answers(port):
    try:
        return call(port, "GET", "/health/live")[0] == 200
    except ConnectionError:
        return False


def call(port, method, path, body=None):
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        head = {"Content-Type": "application/json"}
        connection.request(method, path, body and json.dumps(body), head)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


def send_raw(port, *parts):
    """Status of the answer to these bytes."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for part in parts:
            connection.sendall(part)
        with closing(http.client.HTTPResponse(connection)) as reply:
            reply.begin()
            return reply.status, reply.read()


def read_to_end(connection):
    """Everything that comes until the server ends; a reset is an error."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def states(port, ids):
    return [call(port, "GET", f"/v1/jobs/{each}")[1]["state"] for each in ids]


def running_job(redis_url):
    """Id of the job that runs, once one does."""
    client = connect(redis_url)
    wait_until(lambda: client.zcard("neodim:leases"))
    (job_id,) = client.zrange("neodim:leases", 0, -1)
    return job_id.decode()


def test_a_client_that_leaves_generate_cancels_its_job_and_no_other(server, redis_url):
    connection = http.client.HTTPConnection("127.0.0.1", server)
    connection.request("POST", "/generate", json.dumps(request(prompt="hold")))
    left = running_job(redis_url)
    waiting = call(server, "POST", "/v1/jobs", submission())[1]["id"]

    connection.close()
    wait_until(lambda: states(server, [left, waiting]) == ["cancelled", "succeeded"])

    assert call(server, "GET", f"/v1/jobs/{left}")[1]["partial"] is True


def test_a_reader_of_events_that_leaves_cancels_nothing(server):
    job_id = call(server, "POST", "/v1/jobs", submission(prompt="hold"))[1]["id"]
    connection = http.client.HTTPConnection("127.0.0.1", server)
    connection.request("GET", f"/v1/jobs/{job_id}/events")
    first = connection.getresponse().readline()

    connection.close()
    time.sleep(1.5)

    assert first == b":\n"
    assert states(server, [job_id]) == ["running"]
    call(server, "DELETE", f"/v1/jobs/{job_id}")


def test_events_arrive_while_the_job_runs(server):
    job_id = call(server, "POST", "/v1/jobs", submission(prompt="hold"))[1]["id"]
    with closing(http.client.HTTPConnection("127.0.0.1", server)) as connection:
        connection.request("GET", f"/v1/jobs/{job_id}/events")
        reply = connection.getresponse()
        lines = []
        while not lines or b'"text"' not in lines[-1]:
            lines.append(reply.readline())

        call(server, "DELETE", f"/v1/jobs/{job_id}")
        rest = reply.read()

    assert [kind for _, kind, _ in read_events(b"".join(lines) + rest)] == [
        "state",
        "state",
        "delta",
        "cancelled",
    ]


def test_waiting_clients_are_answered_side_by_side(server):
    held = call(server, "POST", "/v1/jobs", submission(prompt="hold"))[1]["id"]
    replies = []

    def ask():
        replies.append(call(server, "POST", "/generate", request()))

    threads = [threading.Thread(target=ask) for _ in range(64)]
    for thread in threads:
        thread.start()
    live = call(server, "GET", "/health/live")[0]
    call(server, "DELETE", f"/v1/jobs/{held}")
    for thread in threads:
        thread.join()

    assert live == 200
    assert [status for status, _ in replies] == [200] * 64


def test_a_connection_serves_several_requests(server):
    with closing(http.client.HTTPConnection("127.0.0.1", server)) as connection:
        statuses = []
        for body in (request(), {}, request()):
            connection.request("POST", "/generate", json.dumps(body))
            reply = connection.getresponse()
            assert int(reply.headers["Content-Length"]) == len(reply.read())
            statuses.append(reply.status)

    assert statuses == [200, 400, 200]


def test_bodies_in_chunks_are_read_and_bounded(server):
    head = b"POST /generate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = json.dumps(request()).encode()
    huge = b"%x\r\n" % (LIMIT + 1) + b" " * (LIMIT + 1) + b"\r\n0\r\n\r\n"

    fits = send_raw(server, head, b"%x\r\n" % len(body), body, b"\r\n0\r\n\r\n")
    exceeds = send_raw(server, head, huge)
    broken = send_raw(server, head, b"zz\r\n{}\r\n0\r\n\r\n")

    assert fits[0] == 200
    assert exceeds[0] == 413
    assert 400 <= broken[0] < 500


def test_a_body_that_never_comes_delays_nobody_else(server):
    head = b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", server)) as liar:
        liar.sendall(head)

        status, _ = call(server, "POST", "/generate", request())

    assert status == 200
    assert answers(server)


def test_hosts_and_paths_of_any_kind_get_no_server_error(server):
    lines = [
        b"GET /health/live HTTP/1.1\r\nHost: a b\xff\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\n\r\n",
        b"GET /v1/jobs/%ff%fe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /generate?\xc3\xa4=%zz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: x\r\n\r\nhello",
    ]

    statuses = [send_raw(server, line)[0] for line in lines]

    assert all(status < 500 for status in statuses), statuses


MUCH = 8 * 2**20
ANSWERED_BEFORE_THE_BODY_IS_READ = {
    "too large": (b"POST /generate", 413),
    "not read at all": (b"GET /health/live", 200),
    "an unknown path": (b"POST /nowhere", 404),
    "an unknown job": (b"DELETE /v1/jobs/x", 404),
    "a wrong method": (b"PUT /generate", 405),
    "a wrong media type": (b"POST /v1/jobs", 415),
    "a preflight": (b"OPTIONS /generate", 200),
    "no HTTP": (b"POST /generate HTTP/1.1\r\n:", 400),
}


@pytest.mark.parametrize("framing", ["length", "chunks"])
@pytest.mark.parametrize("keeps", [b"close", b"keep-alive"])
@pytest.mark.parametrize(
    ("line", "expected"),
    ANSWERED_BEFORE_THE_BODY_IS_READ.values(),
    ids=ANSWERED_BEFORE_THE_BODY_IS_READ,
)
def test_an_answer_reaches_a_client_that_sends_its_whole_body_first(
    server, line, expected, keeps, framing
):
    head = line + b" HTTP/1.1\r\nHost: x\r\nConnection: " + keeps + b"\r\n"
    if framing == "length":
        sent = head + b"Content-Length: %d\r\n\r\n" % MUCH + bytes(MUCH)
    else:
        chunk = b"10000\r\n" + bytes(65536) + b"\r\n"
        sent = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * (MUCH // 65536)
        sent += b"0\r\n\r\n"

    with socket.create_connection(("127.0.0.1", server)) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = read_to_end(connection)

    assert answer.startswith(b"HTTP/1.1 %d " % expected)


@pytest.mark.parametrize("n_bytes", [90, LIMIT + 1, MUCH])
@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/health/live", 200),
        ("GET", "/v1/jobs/x", 404),
        ("DELETE", "/v1/jobs/x", 404),
        ("POST", "/nowhere", 404),
        ("PUT", "/generate", 405),
        ("POST", "/v1/jobs", 415),
    ],
)
def test_a_body_that_is_not_read_does_not_spoil_the_next_request(
    server, method, path, expected, n_bytes
):
    with closing(http.client.HTTPConnection("127.0.0.1", server)) as connection:
        statuses = []
        for _ in range(2):
            connection.request(method, path, bytes(n_bytes))
            reply = connection.getresponse()
            reply.read()
            statuses.append(reply.status)
        connection.request("POST", "/generate", json.dumps(request()))
        statuses.append(connection.getresponse().status)

    assert statuses == [expected, expected, 200]


BODY = json.dumps(request()).encode()
CUT_SHORT = {
    "by length": b"Content-Length: 5000000\r\n\r\n" + BODY,
    "by length, within the limit": b"Content-Length: 4000\r\n\r\n" + BODY,
    "by length, by one byte": b"Content-Length: %d\r\n\r\n" % (len(BODY) + 1) + BODY,
    "before its first chunk": b"Transfer-Encoding: chunked\r\n\r\n",
    "within a chunk": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % (len(BODY) + 9) + BODY,
    "after a chunk": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n",
    "before its end": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n",
}


@pytest.mark.parametrize("rest", CUT_SHORT.values(), ids=CUT_SHORT)
def test_a_body_that_is_cut_short_is_refused_although_what_came_is_whole(server, rest):
    with socket.create_connection(("127.0.0.1", server)) as connection:
        connection.sendall(b"POST /generate HTTP/1.1\r\nHost: x\r\n" + rest)
        connection.shutdown(socket.SHUT_WR)
        head, _, body = read_to_end(connection).partition(b"\r\n\r\n")

    assert head.split()[1] in (b"400", b"413")
    assert json.loads(body)["error"].startswith("the body ")


NO_REQUESTS = {
    "two lengths": (b"POST /generate HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1", 400),
    "a negative length": (b"POST /generate HTTP/1.1\r\nContent-Length: -1", 400),
    "a length that is no number": (b"POST /v1/jobs HTTP/1.1\r\nContent-Length: x", 400),
    "length and chunks": (
        b"POST /generate HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        400,
    ),
    "an unknown coding": (b"POST /generate HTTP/1.1\r\nTransfer-Encoding: x", 501),
    "an unknown expectation": (b"POST /generate HTTP/1.1\r\nExpect: x", 417),
    "a long path": (b"GET /" + b"x" * 9000 + b" HTTP/1.1", 414),
    "a long header": (b"GET /health/live HTTP/1.1\r\nX: " + b"x" * 9000, 431),
    "many headers": (b"GET /health/live HTTP/1.1" + b"\r\nX: x" * 200, 431),
    "a nameless header": (b"GET /health/live HTTP/1.1\r\n: x", 400),
    "no HTTP": (b"hello", 400),
    "bytes": (b"\xff\xfe \x00 HTTP/1.1", 400),
}


@pytest.mark.parametrize(("head", "expected"), NO_REQUESTS.values(), ids=NO_REQUESTS)
def test_what_is_no_request_is_refused_in_json(server, head, expected):
    with socket.create_connection(("127.0.0.1", server)) as connection:
        connection.sendall(head + b"\r\nHost: x\r\n\r\n" + bytes(2**20))
        with closing(http.client.HTTPResponse(connection)) as reply:
            reply.begin()
            body = reply.read()

    assert reply.status == expected
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["X-Request-Id"]
    assert list(json.loads(body)) == ["error"]


def test_a_stop_ends_idle_connections_at_once_and_lets_open_requests_finish(redis_url, tmp_path):
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    body = json.dumps(submission()).encode()
    with (
        running(redis_url, tmp_path) as (port, process),
        closing(http.client.HTTPConnection("127.0.0.1", port)) as idle,
        socket.create_connection(("127.0.0.1", port)) as open_,
    ):
        idle.request("GET", "/health/live")
        idle.getresponse().read()
        open_.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body[:1])
        time.sleep(0.2)

        process.terminate()
        left = read_to_end(idle.sock)
        open_.sendall(body[1:])
        answer = read_to_end(open_)
        status = process.wait()

    assert left == b""
    assert answer.startswith(b"HTTP/1.1 202 ")
    assert (status, (tmp_path / "log").read_text()) == (0, "")
