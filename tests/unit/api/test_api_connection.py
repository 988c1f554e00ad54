from __future__ import annotations

import socket
from contextlib import closing

import pytest

from api.connection import Connection


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        yield ours, theirs


def test_a_client_without_a_socket_counts_as_present():
    assert Connection({}).is_open()


def test_a_silent_client_is_present(pair):
    assert Connection({"gunicorn.socket": pair[0]}).is_open()


def test_a_client_that_sent_more_is_present_and_loses_nothing(pair):
    ours, theirs = pair
    theirs.sendall(b"GET")

    assert Connection({"gunicorn.socket": ours}).is_open()
    assert ours.recv(10) == b"GET"


def test_a_client_that_closed_is_gone(pair):
    ours, theirs = pair
    theirs.close()

    assert not Connection({"gunicorn.socket": ours}).is_open()


def test_a_socket_that_is_closed_already_is_gone(pair):
    pair[0].close()

    assert not Connection({"gunicorn.socket": pair[0]}).is_open()


def test_looking_leaves_the_sockets_own_timeout(pair):
    ours, _ = pair
    ours.settimeout(7)

    Connection({"gunicorn.socket": ours}).is_open()

    assert ours.gettimeout() == 7


def test_a_read_timeout_holds_within_its_block_only(pair):
    ours, _ = pair
    connection = Connection({"gunicorn.socket": ours})

    with connection.read_timeout(0.01), pytest.raises(TimeoutError):
        ours.recv(1)

    assert ours.gettimeout() is None
