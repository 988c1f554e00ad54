"""Pictures over HTTP: the API, a real Redis, and a worker host with a tiny real model."""

from __future__ import annotations

import base64
import dataclasses
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from flask.testing import FlaskClient
from picture_files import as_base64, decoded, encoded, left_half_mask, stripes
from PIL import Image, ImageChops
from stand_in_model import StandInModel

from api.app import create_app
from api.node.registry import Registry
from workers.contract import keys
from workers.contract.job_record import COMPRESSED_TO_BYTES
from workers.contract.redis_client import connect
from workers.contract.registrations import ModelType
from workers.contract.settings import Settings
from workers.contract.store import JobStore
from workers.images import host as image_host
from workers.images.host import ImageHost
from workers.images.loader import load_pipelines
from workers.images.pipelines import Pipelines

pytestmark = [pytest.mark.redis, pytest.mark.model]

MODEL = "tiny-pictures"
GENERATIONS, EDITS = "/v1/images/generations", "/v1/images/edits"
REQUEST: dict[str, Any] = {
    "model": MODEL,
    "prompt": "a cat",
    "size": "64x64",
    "steps": 3,
    "seed": 7,
    "response_format": "b64_json",
}
MINE = {"Authorization": "Bearer key-1"}
OTHERS = {"Authorization": "Bearer key-2"}


class RunningHost:
    """A host whose jobs are run by a thread, as Celery's would.

    Args:
        settings: of the service.
    """

    def __init__(self, settings: Settings) -> None:
        self.host = ImageHost(settings, "images-1", "0" * 12)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> RunningHost:
        self.host.announce()
        self.host.serve()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.host.leave()

    def stop(self) -> None:
        """As at the end of a worker process: what runs is handed back."""
        self._ended.set()
        self.host.stop()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            self.host.run_next_job()
            time.sleep(0.005)


@pytest.fixture(scope="module")
def pipelines(tiny_image_model: Path) -> Pipelines:
    """The model, loaded once."""
    return load_pipelines(Settings(image_model=str(tiny_image_model), image_model_name=MODEL))


@pytest.fixture
def settings(redis_url: str, pipelines: Pipelines, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(image_host, "load_pipelines", lambda settings: pipelines)
    return Settings(
        redis_url=redis_url,
        model_name="text",
        image_model=MODEL,
        image_model_name=MODEL,
        image_max_size=128,
        model_wait_s=0,
        api_key=("key-1", "key-2"),
    )


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    with RunningHost(settings):
        yield client_of(settings)


def client_of(settings: Settings) -> FlaskClient:
    client = create_app(settings).test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = MINE["Authorization"]
    return client


def draw(client: FlaskClient, **fields: Any) -> list[bytes]:
    """The files of a generation that has to succeed."""
    reply = client.post(GENERATIONS, json={**REQUEST, **fields})
    assert reply.status_code == 200, reply.text
    return [base64.b64decode(each["b64_json"]) for each in reply.json["data"]]


def edit(client: FlaskClient, **fields: Any) -> Any:
    """The reply to a form; bytes are files."""
    parts = {**REQUEST, "image": stripes(), **fields}
    files = {name: part for name, part in parts.items() if isinstance(part, bytes)}
    texts = {name: part for name, part in parts.items() if name not in files}
    form = requests.Request("POST", "http://x", data=texts, files=files).prepare()
    return client.post(EDITS, data=form.body, content_type=form.headers["Content-Type"])


def submit(client: FlaskClient, **fields: Any) -> str:
    """Id of a generation that nobody waits for."""
    body = {"protocol": "image_generation", "request": {**REQUEST, **fields}}
    reply = client.post("/v1/jobs", json=body)
    assert reply.status_code == 202, reply.text
    return str(reply.json["id"])


def until(look: Any) -> Any:
    for _ in range(2000):
        seen = look()
        if seen:
            return seen
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


def test_answer_has_the_fields_of_the_standard(client: FlaskClient) -> None:
    reply = client.post(GENERATIONS, json=REQUEST).json

    assert (reply["code"], reply["message"]) == (0, "success")
    assert abs(reply["created"] - time.time()) < 60
    assert [set(each) for each in reply["data"]] == [{"b64_json", "url", "revised_prompt"}]
    assert reply["data"][0]["url"] == ""
    assert reply["data"][0]["revised_prompt"] == "a cat"


def test_picture_i_of_a_request_is_the_one_of_its_seed_alone(client: FlaskClient) -> None:
    together = draw(client, n=3)

    alone = [draw(client, seed=7 + n)[0] for n in range(3)]

    assert together == alone
    assert len(set(together)) == 3
    assert decoded(together[0]).size == (64, 64)


def test_the_largest_seed_has_pictures_too(client: FlaskClient) -> None:
    assert len(set(draw(client, seed=2**63 - 1, n=2))) == 2


def test_without_a_seed_pictures_do_not_repeat(client: FlaskClient) -> None:
    assert draw(client, seed=None) != draw(client, seed=None)


def test_every_field_of_a_drawing_changes_the_picture(client: FlaskClient) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"prompt": "a dog"},
        {"negative_prompt": "a dog"},
        {"steps": 4},
        {"guidance_scale": 2},
        {"width": 64, "height": 72, "size": None},
        {"file": as_base64(stripes())},
        {"file": as_base64(stripes()), "strength": 0.4},
    ]

    pictures = [draw(client, **fields)[0] for fields in changes]

    assert len(set(pictures)) == len(changes)


def test_a_data_url_is_the_same_as_base64_and_an_empty_file_is_none(client: FlaskClient) -> None:
    file = as_base64(stripes())

    assert draw(client, file=f"data:image/png;base64,{file}") == draw(client, file=file)
    assert draw(client, file="") == draw(client)


def test_default_size_is_the_largest_where_that_is_small(client: FlaskClient) -> None:
    assert decoded(draw(client, size=None)[0]).size == (128, 128)


def test_pictures_at_urls_are_those_of_the_answer(client: FlaskClient) -> None:
    reply = client.post(GENERATIONS, json={**REQUEST, "response_format": "url", "n": 2})

    urls = [each["url"] for each in reply.json["data"]]
    files = [client.get(url.removeprefix("http://127.0.0.1:8787")) for url in urls]

    job_id = reply.headers["x-request-id"]
    assert urls == [f"http://127.0.0.1:8787/v1/images/{job_id}/{n}.png" for n in range(2)]
    assert {each["b64_json"] for each in reply.json["data"]} == {""}
    assert [each.data for each in files] == draw(client, n=2)
    assert {each.content_type for each in files} == {"image/png"}


def test_pictures_are_kept_as_long_as_their_job(client: FlaskClient, settings: Settings) -> None:
    client.post(GENERATIONS, json=REQUEST)
    redis = connect(settings.redis_url or "")

    lifetimes = {
        key.decode().rsplit(":", 2)[0]: redis.ttl(key)
        for key in (*redis.keys(f"{keys.PICTURE_PREFIX}*"), *redis.keys(f"{keys.JOB_PREFIX}*"))
    }

    assert len(lifetimes) == 2
    assert all(abs(each - settings.result_ttl_s) < 5 for each in lifetimes.values())


@pytest.mark.parametrize("path", ["{id}/1.png", "{id}/x.png", "no-such-job/0.png"])
def test_a_picture_that_is_not_there_is_not_found(client: FlaskClient, path: str) -> None:
    job_id = client.post(GENERATIONS, json=REQUEST).headers["x-request-id"]

    reply = client.get(f"/v1/images/{path.format(id=job_id)}")

    assert reply.status_code == 404
    assert reply.json["error"]["type"] == "invalid_request_error"


def test_pictures_want_the_key_of_their_job(client: FlaskClient) -> None:
    job_id = client.post(GENERATIONS, json=REQUEST).headers["x-request-id"]
    path = f"/v1/images/{job_id}/0.png"

    statuses = [
        client.get(path, headers=headers).status_code
        for headers in (MINE, OTHERS, {"Authorization": ""})
    ]

    assert statuses == [200, 404, 401]


def test_an_edit_keeps_what_the_mask_does_not_open(client: FlaskClient) -> None:
    reply = edit(client, mask=left_half_mask())

    assert reply.status_code == 200, reply.text
    drawn = decoded(base64.b64decode(reply.json["data"][0]["b64_json"]))
    changed = ImageChops.difference(drawn, decoded(stripes())).getbbox()
    assert changed == (0, 0, 32, 64)


def test_an_edit_by_form_and_one_by_json_are_the_same(client: FlaskClient) -> None:
    by_form = edit(client, mask=left_half_mask(), guidance_scale="2.5", n="2", strength=".9")
    body = {**REQUEST, "image": as_base64(stripes()), "mask": as_base64(left_half_mask())}
    body |= {"guidance_scale": 2.5, "n": 2, "strength": 0.9}
    job = client.post(
        "/v1/jobs",
        json={"protocol": "image_edit", "request": body},
        headers={"Prefer": "wait=60"},
    )

    assert job.json["result"]["data"] == by_form.json["data"]
    assert len(by_form.json["data"]) == 2


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_source_of_another_size_or_kind_is_drawn_at_the_size_asked_for(
    client: FlaskClient, kind: str
) -> None:
    reply = edit(client, image=stripes((200, 100), kind), size="72x64")

    drawn = decoded(base64.b64decode(reply.json["data"][0]["b64_json"]))
    assert drawn.size == (72, 64)


def test_a_body_with_pictures_may_be_longer_than_others(settings: Settings) -> None:
    file = encoded(Image.effect_noise((1200, 1200), 100))
    client = client_of(settings)

    status = edit(client, image=file).status_code
    as_text = client.post("/v1/jobs", data=b" " * (settings.body_limit_bytes + 1))
    too_long = edit(client, image=b"x" * settings.image_body_limit_bytes)

    assert len(file) > settings.body_limit_bytes
    assert status == 503  # no worker is there, but the body was read
    assert as_text.status_code in (413, 415)
    assert too_long.status_code == 413


BOMB = stripes()[:16] + (60_000).to_bytes(4, "big") * 2 + stripes()[24:]
CUT = stripes()[:100]
BAD: list[tuple[str, dict[str, Any]]] = [
    ("n", {"n": 0}),
    ("n", {"n": 1000}),
    ("size", {"size": "65x64"}),
    ("size", {"size": "136x64"}),
    ("size", {"size": "large"}),
    ("width", {"width": 72}),
    ("height", {"size": None, "width": 64}),
    ("width", {"size": None, "width": 56, "height": 64}),
    ("steps", {"steps": 0}),
    ("seed", {"seed": -1}),
    ("guidance_scale", {"guidance_scale": -1}),
    ("strength", {"strength": 0.5}),
    ("response_format", {"response_format": "png"}),
    ("quality", {"quality": "hd"}),
    ("prompt", {"prompt": None}),
    ("file", {"file": "%"}),
    ("file", {"file": as_base64(b"no picture")}),
    ("file", {"file": as_base64(BOMB)}),
    ("file", {"file": as_base64(CUT)}),
    ("strength", {"file": as_base64(stripes()), "strength": 0.1}),
    ("negative_prompt", {"negative_prompt": "x", "guidance_scale": 1}),
]


@pytest.mark.parametrize(("field", "fields"), BAD)
def test_what_cannot_be_drawn_is_refused_by_name(
    client: FlaskClient, field: str, fields: dict[str, Any]
) -> None:
    reply = client.post(GENERATIONS, json={**REQUEST, **fields})

    assert reply.status_code == 400, reply.text
    assert reply.json["message"].startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("image", {"image": b"no picture"}),
        ("image", {"image": CUT}),
        ("image", {"image": BOMB}),
        ("mask", {"mask": left_half_mask((64, 72))}),
        ("mask", {"mask": stripes(kind="JPEG")}),
        ("mask", {"mask": stripes()}),
        ("n", {"n": "two"}),
        ("file", {"file": "x"}),
    ],
)
def test_an_edit_that_cannot_be_is_refused_by_name(
    client: FlaskClient, field: str, fields: dict[str, Any]
) -> None:
    reply = edit(client, **fields)

    assert reply.status_code == 400, reply.text
    assert reply.json["message"].startswith(f"{field}: ")


def test_what_is_no_form_is_refused_as_such(client: FlaskClient) -> None:
    assert client.post(EDITS, json=REQUEST).status_code == 415
    assert client.post(GENERATIONS, data=b"{}").status_code == 415


def test_an_unknown_model_is_not_found_and_the_known_one_named(client: FlaskClient) -> None:
    replies = [client.post(GENERATIONS, json={**REQUEST, "model": n}) for n in ("nobody", "text")]

    assert [each.status_code for each in replies] == [404, 404]
    assert all(MODEL in each.json["message"] for each in replies)


def test_models_of_both_kinds_are_listed_and_not_mixed_up(client: FlaskClient) -> None:
    listed = {each["id"]: each for each in client.get("/v1/models").json["data"]}
    messages = [{"role": "user", "content": "x"}]
    chat = client.post("/v1/chat/completions", json={"model": MODEL, "messages": messages})

    assert {name: each["type"] for name, each in listed.items()} == {"text": 0, MODEL: 1}
    assert listed[MODEL]["url"] == f"http://127.0.0.1:8787{GENERATIONS}"
    assert (listed[MODEL]["state"], listed[MODEL]["context_length"]) == ("ready", None)
    assert (chat.status_code, chat.json["error"]["code"]) == (404, "unknown_model")
    assert "known: text" in chat.json["message"]


def test_requests_for_an_image_model_of_another_server_go_there(settings: Settings) -> None:
    client = client_of(dataclasses.replace(settings, node_key=("k",)))

    with StandInModel("other") as other:
        fields = {"model": "far", "type": ModelType.TEXT_TO_IMAGE}
        registration = other.registration(api=f"{other.url}{GENERATIONS}", **fields)
        Registry(connect(settings.redis_url or "")).add([registration])
        generated = client.post(GENERATIONS, json={**REQUEST, "model": "far"}).json
        edited = edit(client, model="far", image=b"a file").json

    assert generated["I am"] == edited["I am"] == "other"
    assert '"model":"far"' in generated["heard"].replace(" ", "")
    assert "a file" in edited["heard"]


def test_the_user_is_kept_with_the_job(client: FlaskClient, settings: Settings) -> None:
    job_id = submit(client, user="me")

    assert JobStore(connect(settings.redis_url or ""), 60).get(job_id).user == "me"


def test_without_an_image_model_none_is_found(redis_url: str) -> None:
    client = create_app(Settings(redis_url=redis_url, model_name="text")).test_client()

    reply = client.post(GENERATIONS, json={"prompt": "x"})

    assert (reply.status_code, reply.json["error"]["code"]) == (404, "unknown_model")


def test_without_a_worker_a_request_is_told_to_come_back(settings: Settings) -> None:
    reply = client_of(settings).post(GENERATIONS, json=REQUEST)

    assert (reply.status_code, reply.json["error"]["code"]) == (503, "model_loading")
    assert reply.headers["Retry-After"]


def test_the_service_is_ready_when_each_of_its_models_is(client: FlaskClient) -> None:
    reply = client.get("/health/ready")

    assert (reply.status_code, reply.json) == (503, {"error": "the model text is not ready yet"})


def test_a_waiting_job_with_a_large_picture_is_kept_whole(settings: Settings) -> None:
    noise = encoded(Image.effect_noise((1900, 1900), 100))
    client = client_of(settings)
    body = {name: str(value) for name, value in REQUEST.items()}
    form = requests.Request("POST", "http://x", data=body, files={"image": noise}).prepare()
    headers = {"Prefer": "respond-async", "Content-Type": form.headers["Content-Type"]}

    job = client.post(EDITS, data=form.body, headers=headers)
    with RunningHost(settings):
        path = job.headers["Location"]
        ended = until(lambda: (found := client.get(path).json)["finished_at"] and found)

    assert len(noise) > COMPRESSED_TO_BYTES
    assert (job.status_code, ended["state"]) == (202, "succeeded")


def test_a_job_tells_its_steps_and_is_cancelled_between_two(client: FlaskClient) -> None:
    job_id = submit(client, n=10, steps=400, size="128x128")
    path = f"/v1/jobs/{job_id}"

    until(lambda: client.get(path).json["progress"]["steps_done"] > 2)
    client.delete(path)
    ended = until(lambda: (job := client.get(path).json)["finished_at"] and job)

    assert (ended["state"], ended["partial"]) == ("cancelled", True)
    assert ended["progress"]["steps_expected"] == 4000
    assert ended["progress"]["steps_done"] < 4000
    assert ended["result"]["data"] == []


def test_pictures_finished_before_a_cancel_are_kept(client: FlaskClient) -> None:
    job_id = submit(client, n=10, steps=60, response_format="url")
    path = f"/v1/jobs/{job_id}"

    until(lambda: client.get(path).json["progress"]["steps_done"] > 60)
    client.delete(path)
    ended = until(lambda: (job := client.get(path).json)["finished_at"] and job)

    assert 1 <= len(ended["result"]["data"]) < 10
    assert client.get(f"/v1/images/{job_id}/0.png").status_code == 200


def test_a_job_of_a_worker_that_stops_goes_to_the_next(settings: Settings) -> None:
    client = client_of(settings)
    with RunningHost(settings) as first:
        job_id = submit(client, steps=100)
        until(lambda: client.get(f"/v1/jobs/{job_id}").json["progress"]["steps_done"])
        first.stop()
        waiting = client.get(f"/v1/jobs/{job_id}").json

    with RunningHost(settings):
        ended = until(lambda: (job := client.get(f"/v1/jobs/{job_id}").json)["result"] and job)

    assert (waiting["state"], waiting["attempt"]) == ("queued", 1)
    assert (ended["state"], ended["attempt"]) == ("succeeded", 2)


def test_a_model_that_breaks_fails_its_job_alone(
    client: FlaskClient, pipelines: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_memory(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    with monkeypatch.context() as patch:
        patch.setattr(pipelines.generate.vae, "decode", without_memory)
        broken = client.post(GENERATIONS, json=REQUEST)

    assert (broken.status_code, broken.json["error"]["code"]) == (500, "out_of_memory")
    assert draw(client)
