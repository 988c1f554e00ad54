"""Which server gets a request."""

from __future__ import annotations

import time

import pytest

from api.node.load import Load
from workers.contract.registrations import Registration

A, B, C = SERVERS = [
    Registration(project="p", model="m", api=f"http://{name}/", cid=name) for name in "abc"
]


@pytest.fixture
def load(client):
    return Load(client)


def taken(load, n, servers=SERVERS, start=0):
    return [load.take(servers, str(start + each)).cid for each in range(n)]


def test_requests_spread_evenly_over_servers(load):
    assert sorted(taken(load, 6)) == list("aabbcc")


def test_the_least_busy_server_is_next(load):
    given = dict(zip(taken(load, 6), map(str, range(6)), strict=True))
    load.release(B, given["b"])

    assert load.take(SERVERS, "x") is B


def test_equally_busy_servers_take_turns(load):
    order = []
    for each in range(6):
        server = load.take(SERVERS, str(each))
        order.append(server.cid)
        load.release(server, str(each))

    assert order[:3] == order[3:]
    assert sorted(order[:3]) == list("abc")


def test_a_server_that_is_set_aside_is_not_asked_until_it_has_served_its_time(client):
    load = Load(client, aside_s=0.05)
    load.set_aside(A)
    without = set(taken(load, 6))

    time.sleep(0.1)

    assert without == {"b", "c"}
    assert load.take([A], "x") is A


def test_no_server_is_left_when_all_are_set_aside(load):
    for each in SERVERS:
        load.set_aside(each)

    assert load.take(SERVERS, "x") is None


def test_a_server_with_a_new_address_is_not_set_aside(load):
    load.set_aside(A)
    moved = Registration(project="p", model="m", api="http://elsewhere/", cid="a")

    assert load.take([moved], "x") is moved


def test_requests_of_a_process_that_was_killed_stop_counting(client):
    short = Load(client, mark_s=0.05)
    taken(short, 4, [A])
    time.sleep(0.1)

    assert taken(Load(client), 2, [A, B]) in (["a", "b"], ["b", "a"])


def test_a_long_request_counts_as_long_as_it_is_kept(client):
    load = Load(client, mark_s=0.2)
    load.take([A], "long")
    for _ in range(6):
        time.sleep(0.05)
        load.keep(A, "long")

    assert load.take([A, B], "x") is B


def test_a_mark_that_comes_after_the_end_changes_nothing(client, load):
    load.take([A], "x")
    load.release(A, "x")

    load.keep(A, "x")

    assert client.keys("neodim:forwarded:*") == []
