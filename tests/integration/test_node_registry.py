"""What registers with a service that acts as a node: HTTP in, Redis behind."""

from __future__ import annotations

import time

import pytest
from api_client import make_client

from api.node.registry import Registry
from workers.contract.registrations import ModelType, Registration

KEY = {"Authorization": "Bearer node-key"}
PATHS = [f"{what}/{act}" for what in ("model", "project") for act in ("register", "unregister")]
API = "http://127.0.0.1:1042/v1/chat/completions"
SERVER = {"model": "Llama3-70B", "api": API, "type": 0, "cid": "d15c4007271b"}
FULL = {"project": "DecentralGPT", **SERVER}


@pytest.fixture
def api(redis_url):
    return make_client(redis_url, api_key=("api-key",), node_key=("node-key",))


@pytest.fixture
def registry(client):
    return Registry(client)


def call(api, path, body, headers=KEY):
    return api.post(f"/api/v0/ai/{path}", json=body, headers=headers)


def names(registry):
    return [model.model for model in registry.models()]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("authorization", [None, "Bearer api-key", "Basic node-key"])
def test_the_nodes_key_and_no_other_opens_the_paths(api, registry, path, authorization):
    headers = {"Authorization": authorization} if authorization else {}

    response = call(api, path, {**FULL, "models": []}, headers)

    assert response.status_code == 401
    assert response.json["code"] >= 2001
    assert response.json["error"]["type"] == "authentication_error"
    assert names(registry) == []


def test_the_nodes_key_opens_nothing_else(api):
    assert api.get("/v1/jobs/x", headers=KEY).status_code == 401


@pytest.mark.parametrize("path", PATHS)
def test_a_service_that_is_no_node_has_no_such_paths(redis_url, path):
    response = call(make_client(redis_url), path, FULL)

    assert response.status_code == 404
    assert response.json["code"] >= 2001


def test_a_registered_model_is_known_until_it_is_unregistered(api, registry):
    done = call(api, "model/register", FULL)
    (known,) = registry.models()
    identity = {name: FULL[name] for name in ("project", "model", "cid")}
    undone = [call(api, "model/unregister", identity) for _ in range(2)]

    assert (done.status_code, done.json) == (200, {"code": 0, "message": "ok"})
    assert (known.model, known.project, known.api) == ("Llama3-70B", "DecentralGPT", API)
    assert (known.type, known.n_servers) == (ModelType.TEXT, 1)
    assert abs(known.registered_ms - time.time() * 1000) < 60_000
    assert [each.json["code"] for each in undone] == [0, 0]
    assert names(registry) == []


def test_registering_again_updates(api, registry):
    call(api, "model/register", FULL)
    call(api, "model/register", {**FULL, "api": "http://other/v1/chat/completions"})

    (server,) = registry.servers("Llama3-70B")

    assert server.api == "http://other/v1/chat/completions"


def test_servers_of_one_model_are_told_apart_by_cid_and_listed_once(api, registry):
    for cid in ("a", "b", None):
        call(api, "model/register", {**FULL, "cid": cid})

    (model,) = registry.models()

    assert model.n_servers == 3
    assert [each.cid for each in registry.servers(model.model)] == ["", "a", "b"]


def test_a_project_replaces_its_own_servers_and_no_others(api, registry):
    call(api, "model/register", FULL)
    call(api, "model/register", {**FULL, "project": "other", "model": "theirs"})
    models = [{**SERVER, "model": "new", "type": 1}, {"model": "newer", "api": API}]

    response = call(api, "project/register", {"project": "DecentralGPT", "models": models})

    assert response.json["code"] == 0
    assert names(registry) == ["new", "newer", "theirs"]
    assert registry.servers("new")[0].type is ModelType.TEXT_TO_IMAGE


def test_a_project_is_unregistered_with_all_its_servers(api, registry):
    models = [{**SERVER, "cid": cid} for cid in "abc"]
    call(api, "project/register", {"project": "P", "models": models})
    call(api, "model/register", FULL)

    response = call(api, "project/unregister", {"project": "P"})

    assert response.json["code"] == 0
    assert [each.project for each in registry.servers("Llama3-70B")] == ["DecentralGPT"]


def test_what_is_not_repeated_is_forgotten(client):
    registry = Registry(client, memory_s=0.05)
    registry.add([Registration(project="P", model="m", api=API)])
    before = names(registry)

    time.sleep(0.1)

    assert (before, names(registry)) == (["m"], [])
    assert client.keys("neodim:model-server*") == []


BAD = {
    "no project": ({"project": ...}, "project"),
    "no model": ({"model": ...}, "model"),
    "no api": ({"api": ...}, "api"),
    "null model": ({"model": None}, "model"),
    "empty model": ({"model": ""}, "model"),
    "model a number": ({"model": 5}, "model"),
    "api no url": ({"api": "hello"}, "api"),
    "api a file": ({"api": "file:///etc/passwd"}, "api"),
    "api without host": ({"api": "http:///v1"}, "api"),
    "api with a user": ({"api": "http://u@h/v1"}, "api"),
    "type 9": ({"type": 9}, "type"),
    "type negative": ({"type": -1}, "type"),
    "type a word": ({"type": "zero"}, "type"),
    "type a truth": ({"type": True}, "type"),
    "cid a number": ({"cid": 7}, "cid"),
    "cid too long": ({"cid": "x" * 3000}, "cid"),
}


@pytest.mark.parametrize(("change", "field"), BAD.values(), ids=BAD)
def test_a_bad_registration_is_refused_by_the_name_of_its_field(api, registry, change, field):
    body = {name: value for name, value in {**FULL, **change}.items() if value is not ...}

    response = call(api, "model/register", body)

    assert response.status_code == 400
    assert response.json["code"] >= 2001
    assert response.json["error"]["param"] == field
    assert response.json["message"].startswith(f"{field}: ")
    assert names(registry) == []


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        (..., "models: is required"),
        ({}, "models: must be a list of objects, not an object"),
        ([SERVER, 5], "models: must be a list of objects, but entry 1 is 5"),
        ([SERVER, {**SERVER, "type": 3}], "models: entry 1: type: must be at most 2, not 3"),
        ([SERVER] * 1001, "models: must have at most 1000 entries, not 1001"),
    ],
)
def test_a_bad_project_is_refused_as_a_whole(api, registry, models, expected):
    body = {"project": "P"} if models is ... else {"project": "P", "models": models}

    response = call(api, "project/register", body)

    assert (response.status_code, response.json["message"]) == (400, expected)
    assert names(registry) == []


def test_fields_that_are_not_known_yet_are_skipped(api, registry):
    response = call(api, "model/register", {**FULL, "region": "eu"})

    assert response.status_code == 200
    assert names(registry) == ["Llama3-70B"]


def test_a_body_needs_no_media_type_but_must_be_json(api):
    fine = api.post("/api/v0/ai/project/unregister", data='{"project": "P"}', headers=KEY)
    broken = api.post("/api/v0/ai/project/unregister", data="project=P", headers=KEY)

    assert fine.status_code == 200
    assert (broken.status_code, broken.json["code"]) == (400, 2008)


def test_the_paths_are_documented_where_they_are_served(redis_url, api):
    served = api.get("/openapi.json", headers={"Authorization": "Bearer api-key"}).json["paths"]
    not_served = make_client(redis_url).get("/openapi.json").json["paths"]

    assert "/api/v0/ai/model/register" in served
    assert "/api/v0/ai/model/register" not in not_served
