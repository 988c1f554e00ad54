from __future__ import annotations

import threading

import pytest
from api_client import make_client, request
from scripted_worker import MODEL, ScriptedWorker

from workers.contract.fleet import Fleet
from workers.contract.redis_client import connect


@pytest.fixture
def client(redis_url):
    with ScriptedWorker(redis_url):
        yield make_client(redis_url)


def test_generate_waits_for_the_result(client):
    response = client.post("/generate", json=request())

    assert response.status_code == 200
    assert response.json["sequences"][0]["generated_text"] == "0 1 2 3 "
    assert response.json["generated_tokens_count"] == 4
    assert response.json["gpus"] == []


def test_generate_reads_json_whatever_the_content_type_says(client):
    body = b'{"prompt": "count", "generated_tokens_count": 1, "max_total_tokens": 9}'

    form = client.post("/generate", data=body, content_type="application/x-www-form-urlencoded")
    none = client.post("/generate", data=body)

    assert (form.status_code, none.status_code) == (200, 200)


def test_generate_goes_by_the_id_of_its_job(client):
    response = client.post("/generate", json=request())

    job = client.get(f"/v1/jobs/{response.headers['x-request-id']}").json

    assert job["result"] == response.json


def test_many_clients_at_once_get_their_own_answers(redis_url):
    app = make_client(redis_url).application
    answers = {}

    def ask(n):
        reply = app.test_client().post("/generate", json=request(generated_tokens_count=n))
        answers[n] = reply.json["sequences"][0]["generated_text"]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(24)]
    with ScriptedWorker(redis_url):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert answers == {n: "".join(f"{k} " for k in range(n)) for n in range(24)}


def test_generate_says_why_its_job_failed(client):
    rejected = client.post("/generate", json=request(prompt="fail prompt_too_long"))
    broken = client.post("/generate", json=request(prompt="fail out_of_memory"))
    unheard_of = client.post("/generate", json=request(prompt="fail of_another_version"))

    assert (rejected.status_code, rejected.json) == (400, {"error": "it was to fail"})
    assert (broken.status_code, broken.json) == (500, {"error": "it was to fail"})
    assert unheard_of.status_code == 500


def test_generate_says_when_somebody_else_cancelled_its_job(client):
    started = threading.Event()

    def cancel_when_running():
        redis = connect(client.application.extensions["neodim"].settings.redis_url)
        while not (running := redis.zrange("neodim:leases", 0, -1)):
            started.wait(0.01)
        client.application.test_client().delete(f"/v1/jobs/{running[0].decode()}")

    other = threading.Thread(target=cancel_when_running)
    other.start()
    response = client.post("/generate", json=request(prompt="hold"))
    other.join()

    assert response.status_code == 409
    assert "was cancelled" in response.json["error"]


def test_generate_is_503_with_retry_after_while_no_worker_is_ready(redis_url):
    response = make_client(redis_url).post("/generate", json=request())

    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert "not ready" in response.json["error"]


def test_a_bad_request_is_told_so_even_while_no_worker_is_ready(redis_url):
    response = make_client(redis_url).post("/generate", json=request(top_p=2))

    assert response.status_code == 400
    assert response.json == {"error": "top_p: must be above 0 and below 1, not 2.0"}


def test_a_request_that_can_never_fit_is_refused_at_once(redis_url):
    with ScriptedWorker(redis_url, max_length=100, slots=2):
        client = make_client(redis_url)
        long = client.post("/generate", json=request(generated_tokens_count=100))
        longest = client.post("/generate", json=request(generated_tokens_count=99))
        many = client.post("/generate", json=request(sequences_count=3))

    assert (long.status_code, many.status_code) == (400, 400)
    assert long.json["error"].startswith("generated_tokens_count: must be at most 99")
    assert many.json["error"].startswith("sequences_count: must be at most 2")
    assert longest.status_code == 200


def test_prefer_respond_async_gives_the_job_at_once(client):
    response = client.post(
        "/generate", json=request(prompt="hold"), headers={"Prefer": "respond-async"}
    )

    assert response.status_code == 202
    assert response.headers["Location"] == f"/v1/jobs/{response.json['id']}"
    assert response.headers["Preference-Applied"] == "respond-async"
    assert response.json["state"] in ("queued", "running")


def test_prefer_wait_gives_the_result_when_it_is_there_in_time(client):
    response = client.post("/generate", json=request(), headers={"Prefer": "wait=60"})

    assert response.status_code == 200
    assert response.headers["Preference-Applied"] == "wait=60"
    assert response.json["sequences"][0]["generated_text"] == "0 1 2 3 "


def test_prefer_wait_gives_the_job_and_leaves_it_running_when_time_is_up(client):
    response = client.post("/generate", json=request(prompt="hold"), headers={"Prefer": "wait=1"})

    assert response.status_code == 202
    assert response.headers["Location"] == f"/v1/jobs/{response.json['id']}"
    assert client.get(response.headers["Location"]).json["state"] == "running"


def test_preferred_waiting_needs_no_ready_worker(redis_url):
    response = make_client(redis_url).post(
        "/generate", json=request(), headers={"Prefer": "wait=0"}
    )

    assert (response.status_code, response.json["state"]) == (202, "queued")


def test_a_store_that_is_away_is_503_with_retry_after(tmp_path):
    client = make_client(f"unix://{tmp_path}/none.sock")

    answers = [
        client.post("/generate", json=request()),
        client.get("/health/ready"),
        client.get("/v1/jobs/x"),
    ]

    assert [each.status_code for each in answers] == [503, 503, 503]
    assert all(each.headers["Retry-After"] for each in answers)
    assert answers[0].json == {"error": "the job store does not answer"}


def test_health_tells_living_from_ready(redis_url):
    client = make_client(redis_url)
    loading = client.get("/health/ready")
    with ScriptedWorker(redis_url):
        ready = make_client(redis_url).get("/health/ready")

    assert client.get("/health/live").json == {"status": "live"}
    assert (loading.status_code, loading.headers["Retry-After"]) == (503, "3")
    assert ready.json == {"status": "ready", "model": MODEL, "workers": 1, "instance": ""}


def test_ready_counts_only_workers_of_the_model(redis_url):
    with ScriptedWorker(redis_url):
        client = make_client(redis_url)
        cards = Fleet(connect(redis_url)).workers()

    assert [card.model for card in cards] == [MODEL]
    assert client.application.extensions["neodim"].fleet.ready("another") == []
