from __future__ import annotations

import contextlib
import io
import socket
import threading

import pytest
from gunicorn.http.body import Body
from gunicorn.http.errors import InvalidChunkSize

from api import gunicorn_worker
from api.gunicorn_worker import discard_body, linger

LIMIT = 1000


@pytest.fixture
def pair(monkeypatch):
    """The server's and the client's end of a connection, with limits that are soon reached."""
    monkeypatch.setattr(gunicorn_worker, "MAX_DISCARDED_BYTES", LIMIT)
    monkeypatch.setattr(gunicorn_worker, "MAX_SILENCE_S", 0.01)
    monkeypatch.setattr(gunicorn_worker, "_STEP_BYTES", 100)
    server, client = socket.socketpair()
    with server, client:
        yield server, client


class BrokenReader:
    def read(self, size):
        raise InvalidChunkSize(b"zz")


def test_a_client_that_is_silent_is_not_waited_for(pair):
    server, client = pair

    linger(server)

    assert client.recv(1) == b""


def test_a_client_that_ends_is_read_to_its_end(pair):
    server, client = pair
    client.sendall(bytes(LIMIT - 1))
    client.shutdown(socket.SHUT_WR)

    linger(server)

    assert server.recv(1) == b""


def test_a_client_that_sends_without_end_is_left(pair):
    server, client = pair

    def send_for_ever():
        with contextlib.suppress(OSError):
            while True:
                client.sendall(bytes(100))

    sender = threading.Thread(target=send_for_ever)
    sender.start()
    linger(server)
    server.close()

    sender.join(timeout=30)
    assert not sender.is_alive()


def test_a_client_that_is_gone_is_no_error(pair):
    server, client = pair
    client.close()

    linger(server)
    server.close()
    linger(server)


@pytest.mark.parametrize(("n_bytes", "expected"), [(0, True), (LIMIT - 1, True), (LIMIT, False)])
def test_a_body_is_discarded_up_to_a_limit(pair, n_bytes, expected):
    server, _ = pair
    body = Body(io.BytesIO(bytes(n_bytes)))

    assert discard_body(body, server) is expected


def test_a_broken_body_leaves_nothing_to_go_on_with(pair):
    server, _ = pair
    body = Body(BrokenReader())

    assert not discard_body(body, server)
    assert not discard_body(body, server)
    assert server.gettimeout() is None
