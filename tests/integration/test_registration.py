"""Registration with a node: a real Redis, a stand-in node, clocks that the tests turn."""

from __future__ import annotations

import logging
import threading
import time

import pytest
from stand_in_node import StandInNode

from workers.contract.fleet import Fleet, WorkerCard, WorkerState
from workers.contract.http_address import parse_http_url
from workers.contract.node_ledger import NodeLedger, NodeState, node_statuses
from workers.contract.redis_client import connect
from workers.contract.settings import Settings
from workers.registration.lease import RegistrarLease
from workers.registration.node_client import NodeClient
from workers.registration.registrar import Registrar
from workers.registration.upkeep import Upkeep, make_upkeep

URL = "http://me:1"
API = f"{URL}/v1/chat/completions"


class Scene:
    """One node, one Redis, and workers as seen by one of them."""

    def __init__(self, client, node):
        self.client, self.node, self.now = client, node, 0.0
        self.fleet = Fleet(client)
        self.ledger = NodeLedger(client, node.url)

    def report(self, name, *, model="m", state=WorkerState.READY):
        self.fleet.report(
            WorkerCard(
                name=name, model=model, state=state, slots=1, max_length=8, host="h", pid=1,
                started_ms=0, cid=cid_of(name),
            )
        )  # fmt: skip

    def registrar(self, worker="a", timeout_s=5.0, project="P"):
        return Registrar(
            NodeClient(parse_http_url(self.node.url), timeout_s),
            self.ledger,
            RegistrarLease(self.client, self.node.url, worker),
            self.fleet,
            project=project,
            public_url=URL,
            clock=lambda: self.now,
        )

    def known(self):
        return sorted(each.cid for each in self.ledger.registered())


def cid_of(name):
    return name * 12


@pytest.fixture
def node():
    with StandInNode() as node:
        yield node


@pytest.fixture
def scene(client, node):
    return Scene(client, node)


def wait_until(is_so):
    for _ in range(500):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


def test_a_model_is_registered_with_the_standards_fields(scene, node):
    scene.report("a")

    scene.registrar().tick()

    (call,) = node.calls
    assert call.path == "/api/v0/ai/model/register"
    assert call.headers["Content-Type"] == "application/json"
    expected = {"project": "P", "model": "m", "api": API, "type": 0, "cid": "a" * 12}
    assert call.json == expected
    assert scene.ledger.status().state is NodeState.REGISTERED


def test_several_servers_go_in_one_call(scene, node):
    scene.report("a")
    scene.report("b", model="other")

    scene.registrar().tick()

    (call,) = node.calls
    assert call.path == "/api/v0/ai/project/register"
    assert call.json == {
        "project": "P",
        "models": [
            {"model": "m", "api": API, "type": 0, "cid": "a" * 12},
            {"model": "other", "api": API, "type": 0, "cid": "b" * 12},
        ],
    }
    assert scene.ledger.status().n_registered == 2


def test_nothing_is_registered_or_said_before_a_worker_is_ready(scene, node, caplog):
    scene.report("a", state=WorkerState.LOADING)

    scene.registrar().tick()

    assert node.heard() == []
    assert caplog.records == []
    assert scene.ledger.status().state is NodeState.IDLE


def test_registration_is_repeated_every_minute(scene, node):
    scene.report("a")
    registrar = scene.registrar()
    times = []
    for scene.now in range(0, 130, 5):
        registrar.tick()
        times += [scene.now] * len(node.heard())

    assert times == [0, 60, 120]


def test_a_new_worker_is_registered_at_once_together_with_the_others(scene, node):
    scene.report("a")
    registrar = scene.registrar()
    registrar.tick()
    scene.report("b")

    registrar.tick()

    assert node.heard() == ["model/register", "project/register"]


@pytest.mark.parametrize(
    ("mood", "expected"),
    [
        ("500", "model/register: status 500, code 1001: out of order"),
        ("1010", "model/register: status 200, code 1010: Unsupported function"),
        ("page", "model/register: status 200: its answer is not the standard's JSON"),
        ("hang", "no answer within 0.2 s"),
        ("cut", "no answer: Remote end closed connection without response"),
    ],
)
def test_what_goes_wrong_is_kept_logged_once_and_tried_again_ever_later(
    scene, node, caplog, mood, expected
):
    scene.report("a")
    node.mood = mood
    registrar = scene.registrar(timeout_s=0.2)
    times = []
    for scene.now in range(17):
        registrar.tick()
        times += [scene.now] * len(node.heard())
    failing = scene.ledger.status()

    node.mood = "fine"
    scene.now = 100
    registrar.tick()

    assert times == [0, 1, 3, 7, 15]
    assert (failing.state, failing.error) == (NodeState.FAILING, expected)
    assert scene.ledger.status().state is NodeState.REGISTERED
    assert [record.message.count(expected) for record in caplog.records] == [1, 0]
    assert scene.known() == ["a" * 12]


def test_a_node_that_is_gone_is_tried_again(scene, node):
    scene.report("a")
    node.close()

    scene.registrar().tick()

    assert scene.ledger.status().error == "no answer: [Errno 111] Connection refused"
    assert scene.known() == []


def test_the_api_learns_how_things_stand_from_the_settings_alone(scene, node):
    scene.report("a")
    scene.registrar().tick()

    statuses = node_statuses(scene.client, [node.url.replace("//", "//secret@"), "http://other"])

    assert [(each.node, each.state) for each in statuses] == [(node.url, NodeState.REGISTERED)]


def test_a_state_has_its_beginning(scene, node):
    node.mood = "500"
    scene.report("a")
    scene.registrar().tick()
    first = scene.ledger.status().since_ms
    time.sleep(0.01)

    scene.registrar().tick()
    same = scene.ledger.status().since_ms
    node.mood = "fine"
    scene.registrar().tick()

    assert same == first
    assert scene.ledger.status().since_ms > first


def test_a_worker_that_was_lost_is_unregistered_by_another(scene, node):
    scene.report("a")
    scene.report("b")
    registrar = scene.registrar()
    registrar.tick()
    scene.fleet.leave("b")

    registrar.tick()

    assert node.calls[-1].path == "/api/v0/ai/model/unregister"
    assert node.calls[-1].json == {"project": "P", "model": "m", "cid": "b" * 12}
    assert scene.known() == ["a" * 12]


def test_the_next_start_unregisters_what_the_last_one_left(scene, node):
    scene.report("a", model="old")
    scene.registrar("a").tick()
    scene.client.delete(*scene.client.keys("neodim:registrar:*"))
    scene.report("a", model="new")
    node.heard()

    scene.registrar("z").tick()

    assert node.heard() == ["model/register", "model/unregister"]
    assert [each.model for each in scene.ledger.registered()] == ["new"]


def test_another_project_replaces_the_one_before(scene, node):
    scene.report("a")
    scene.registrar().tick()
    node.heard()

    scene.registrar(project="Q").tick()

    assert [call.json["project"] for call in node.calls] == ["Q", "P"]
    assert node.heard() == ["model/register", "model/unregister"]


def test_unregistering_is_tried_again_and_given_up_in_the_end(scene, node):
    scene.report("a")
    registrar = scene.registrar()
    registrar.tick()
    scene.fleet.leave("a")
    node.heard()
    node.mood = "1010"
    for scene.now in range(300):
        registrar.tick()

    assert node.heard() == ["model/unregister"] * 10
    assert scene.known() == []
    assert scene.ledger.status().state is NodeState.IDLE


def test_one_worker_at_a_time_speaks_with_a_node(scene, node):
    scene.report("a")
    first, second = scene.registrar("a"), scene.registrar("b")
    first.tick()
    second.tick()
    one = node.heard()

    scene.client.delete(*scene.client.keys("neodim:registrar:*"))
    second.tick()
    first.tick()

    assert one == ["model/register"]
    assert node.heard() == ["model/register"]


def test_a_worker_that_ends_unregisters_itself_though_another_speaks_with_the_node(scene, node):
    scene.report("a")
    scene.report("b")
    speaker = scene.registrar("a")
    speaker.tick()
    scene.report("b", state=WorkerState.DRAINING)

    scene.registrar("b").farewell(cid_of("b"))
    speaker.tick()

    assert node.heard() == ["project/register", "model/unregister"]
    assert scene.known() == ["a" * 12]


def test_the_last_worker_unregisters_a_project_that_was_registered_as_a_whole(scene, node):
    scene.report("a")
    scene.report("b")
    registrar = scene.registrar()
    registrar.tick()
    scene.fleet.leave("b")
    registrar.tick()
    node.heard()

    registrar.farewell(cid_of("a"))

    assert node.calls[0].json == {"project": "P"}
    assert node.heard() == ["project/unregister"]
    assert scene.client.keys("neodim:registered:*") == []


def test_the_only_worker_leaves_the_project_to_other_services(scene, node):
    scene.report("a")
    registrar = scene.registrar()
    registrar.tick()
    node.heard()

    registrar.farewell(cid_of("a"))

    assert node.calls[0].json == {"project": "P", "model": "m", "cid": "a" * 12}
    assert node.heard() == ["model/unregister"]
    assert scene.client.keys("neodim:registered:*") == []


def test_a_worker_that_was_never_registered_says_nothing_at_its_end(scene, node):
    scene.registrar().farewell(cid_of("a"))

    assert node.heard() == []


def test_a_farewell_that_a_node_does_not_take_is_left_to_others(scene, node):
    scene.report("a")
    scene.report("b")
    speaker = scene.registrar("a")
    speaker.tick()
    node.mood = "500"
    scene.fleet.leave("b")
    scene.registrar("b").farewell(cid_of("b"))
    node.mood = "fine"
    node.heard()

    speaker.tick()

    assert node.heard() == ["model/unregister"]


def test_a_key_in_the_nodes_url_is_sent_and_kept_out_of_redis(scene, node):
    scene.report("a")
    address = parse_http_url(node.url.replace("://", "://secret@"))
    NodeClient(address).unregister_project("P")

    assert node.calls[0].headers["Authorization"] == "Bearer secret"
    assert "secret" not in str(address)


def test_upkeep_registers_in_the_background_and_unregisters_when_it_stops(
    redis_url, scene, node, caplog
):
    caplog.set_level(logging.ERROR)
    scene.report("a")
    settings = Settings(node_url=(node.url,), redis_url=redis_url, project="P", public_url=URL)
    upkeep = make_upkeep(
        settings,
        connect(redis_url),
        worker="a",
        cid=cid_of("a"),
        report=lambda: scene.report("a", state=WorkerState.DRAINING),
    )
    upkeep.start()
    wait_until(lambda: scene.known())

    upkeep.stop()
    upkeep.join()

    assert node.heard() == ["model/register", "model/unregister"]
    assert [card.state for card in scene.fleet.workers()] == [WorkerState.DRAINING]


def test_a_node_that_hangs_delays_neither_another_node_nor_the_end(client, redis_url):
    with StandInNode() as hanging, StandInNode() as fine:
        hanging.mood = "hang"
        scenes = [Scene(client, each) for each in (hanging, fine)]
        scenes[0].report("a")
        registrars = [scene.registrar(timeout_s=20) for scene in scenes]
        upkeep = Upkeep(registrars, cid_of("a"), report=lambda: None, tick_s=0.01)
        before = threading.active_count()
        upkeep.start()
        wait_until(lambda: scenes[1].known() and hanging.calls)

        upkeep.stop()
        upkeep.join(timeout_s=0.5)

        assert fine.heard() == ["model/register", "model/unregister"]
        assert threading.active_count() > before  # the hanging call goes on, in nobody's way
    wait_until(lambda: threading.active_count() < before)


def test_upkeep_goes_on_when_redis_comes_back(redis_url, scene, node, caplog):
    scene.report("a")
    broken = connect("unix:///nowhere.sock")
    registrar = scene.registrar()
    registrar._lease = RegistrarLease(broken, node.url, "a")
    upkeep = Upkeep([registrar], cid_of("a"), report=lambda: None, tick_s=0.01)
    upkeep.start()
    wait_until(lambda: "registration with nodes" in caplog.text)

    registrar._lease = RegistrarLease(scene.client, node.url, "a")
    wait_until(lambda: scene.known())
    upkeep.stop()
    upkeep.join()

    assert node.heard() == ["model/register", "model/unregister"]
