from __future__ import annotations

import re
import time

import pytest
from api_client import make_client, read_events, request, submission, text_of
from scripted_worker import MODEL, ScriptedWorker

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def client(redis_url):
    with ScriptedWorker(redis_url):
        yield make_client(redis_url)


def ended(client, job_id):
    while (job := client.get(f"/v1/jobs/{job_id}").json)["state"] in ("queued", "running"):
        time.sleep(0.005)
    return job


def running(client, **fields):
    job_id = client.post("/v1/jobs", json=submission(**fields)).json["id"]
    while client.get(f"/v1/jobs/{job_id}").json["progress"]["tokens_generated"] < 1:
        time.sleep(0.005)
    return job_id


def test_a_submitted_job_is_accepted_with_its_place(redis_url):
    response = make_client(redis_url).post("/v1/jobs", json=submission())

    job = response.json
    assert response.status_code == 202
    assert response.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert response.headers["x-request-id"] == job["id"]
    assert re.fullmatch(TIME, job.pop("created_at"))
    assert job.pop("id")
    assert job == {
        "protocol": "neodim",
        "model": MODEL,
        "state": "queued",
        "started_at": None,
        "finished_at": None,
        "attempt": 0,
        "worker": None,
        "is_possible": False,
        "progress": {"tokens_generated": 0, "tokens_expected": 4},
        "result": None,
        "error": None,
    }


def test_an_ended_job_has_what_generate_answers(client):
    answer = client.post("/generate", json=request(seed=1)).json

    job = ended(client, client.post("/v1/jobs", json=submission(seed=1)).json["id"])

    assert job["state"] == "succeeded"
    assert job["result"] == answer
    assert job["progress"] == {"tokens_generated": 4, "tokens_expected": 4}
    assert (job["attempt"], job["worker"]) == (1, "scripted-1")
    assert job["created_at"] <= job["started_at"] <= job["finished_at"]
    assert "partial" not in job


def test_a_failed_job_says_why(client):
    submitted = client.post("/v1/jobs", json=submission(prompt="fail out_of_memory"))

    job = ended(client, submitted.json["id"])

    assert (job["state"], job["result"]) == ("failed", None)
    assert job["error"] == {"code": "out_of_memory", "message": "it was to fail"}


def test_submitting_with_prefer_wait_gives_the_ended_job(client):
    response = client.post("/v1/jobs", json=submission(), headers={"Prefer": "wait=60"})

    assert (response.status_code, response.json["state"]) == (200, "succeeded")
    assert response.headers["Preference-Applied"] == "wait=60"


@pytest.mark.parametrize("prefer", ["wait=abc", "wait=-1", "wait", "handling=lenient", ";;;"])
def test_preferences_that_mean_nothing_are_passed_over(client, prefer):
    response = client.post("/v1/jobs", json=submission(), headers={"Prefer": prefer})

    assert response.status_code == 202
    assert "Preference-Applied" not in response.headers


def test_cancelling_a_queued_job_ends_it(redis_url):
    client = make_client(redis_url)
    job_id = client.post("/v1/jobs", json=submission()).json["id"]

    response = client.delete(f"/v1/jobs/{job_id}")

    assert (response.status_code, response.json["state"]) == (200, "cancelled")
    assert response.json["result"] is None


def test_cancelling_a_running_job_keeps_its_text(client):
    job_id = running(client, prompt="hold")

    response = client.delete(f"/v1/jobs/{job_id}")
    job = ended(client, job_id)

    assert response.status_code == 200
    assert job["state"] == "cancelled"
    assert job["partial"] is True
    assert job["result"]["sequences"][0]["generated_text"] == "0 "
    assert job["progress"] == {"tokens_generated": 1, "tokens_expected": 4}


def test_cancelling_what_has_ended_changes_nothing(client):
    job = client.post("/v1/jobs", json=submission(), headers={"Prefer": "wait=60"}).json

    response = client.delete(f"/v1/jobs/{job['id']}")

    assert (response.status_code, response.json) == (200, job)


@pytest.mark.parametrize("job_id", ["nope", "x" * 2000, "%00", "j%C3%B6b", "..%2F..%2Fetc"])
def test_unknown_ids_are_not_found(client, job_id):
    path = f"/v1/jobs/{job_id}"

    answers = [client.get(path), client.delete(path), client.get(f"{path}/events")]

    assert [each.status_code for each in answers] == [404, 404, 404]
    assert all(each.json["code"] and each.json["message"] for each in answers)


def test_events_tell_the_states_the_text_and_the_end(client):
    job = client.post("/v1/jobs", json=submission(), headers={"Prefer": "wait=60"}).json

    response = client.get(f"/v1/jobs/{job['id']}/events")

    events = read_events(response.data)
    assert response.content_type == "text/event-stream; charset=utf-8"
    assert [(kind, data) for _, kind, data in events] == [
        ("state", {"state": "queued"}),
        ("state", {"state": "running"}),
        ("delta", {"index": 0, "text": "0 "}),
        ("delta", {"index": 0, "text": "1 2 "}),
        ("delta", {"index": 0, "text": "3 "}),
        ("succeeded", job),
    ]
    assert text_of(events) == job["result"]["sequences"][0]["generated_text"]


def test_events_can_be_followed_while_the_job_runs(client):
    job_id = running(client, prompt="hold")

    response = client.get(f"/v1/jobs/{job_id}/events")
    client.delete(f"/v1/jobs/{job_id}")
    events = read_events(response.data)

    assert events[-1][1:] == ("cancelled", ended(client, job_id))


def test_events_name_the_sequence_of_each_delta(client):
    job_id = client.post("/v1/jobs", json=submission(sequences_count=2)).json["id"]

    events = read_events(client.get(f"/v1/jobs/{job_id}/events").data)

    assert {data["index"] for _, kind, data in events if kind == "delta"} == {0, 1}


def test_events_resumed_anywhere_give_exactly_the_rest(client):
    job = client.post("/v1/jobs", json=submission(), headers={"Prefer": "wait=60"}).json
    path = f"/v1/jobs/{job['id']}/events"
    events = read_events(client.get(path).data)

    by_query = [client.get(f"{path}?starting_after={event[0]}").data for event in events]
    by_header = [client.get(path, headers={"Last-Event-ID": event[0]}).data for event in events]

    rest = [events[n + 1 :] for n in range(len(events))]
    assert [read_events(body) for body in by_query] == rest
    assert [read_events(body) for body in by_header] == rest


def test_the_last_event_id_wins_over_starting_after(client):
    job = client.post("/v1/jobs", json=submission(), headers={"Prefer": "wait=60"}).json
    path = f"/v1/jobs/{job['id']}/events"
    events = read_events(client.get(path).data)

    response = client.get(
        f"{path}?starting_after={events[0][0]}", headers={"Last-Event-ID": events[-2][0]}
    )

    assert read_events(response.data) == events[-1:]


def test_events_beyond_the_end_close_at_once(client):
    job = client.post("/v1/jobs", json=submission(), headers={"Prefer": "wait=60"}).json

    response = client.get(f"/v1/jobs/{job['id']}/events?starting_after=99999999999999-0")

    assert read_events(response.data) == []


@pytest.mark.parametrize("event_id", ["nonsense", "-1", "", "1-2-3", "1-", "9" * 20, "1-1 "])
def test_ids_that_are_no_events_are_refused(client, event_id):
    job_id = client.post("/v1/jobs", json=submission()).json["id"]

    response = client.get(f"/v1/jobs/{job_id}/events", query_string={"starting_after": event_id})

    assert response.status_code == 400
    assert response.json["error"]["param"] == "starting_after"


def test_head_of_a_stream_has_no_body_and_returns(client):
    job_id = client.post("/v1/jobs", json=submission(prompt="hold")).json["id"]

    response = client.head(f"/v1/jobs/{job_id}/events")

    assert (response.status_code, response.data) == (200, b"")


def test_submissions_that_are_wrong_are_refused_by_field(redis_url):
    client = make_client(redis_url)
    wrong = {
        "protocol": {"request": request()},
        "'smoke'": {"protocol": "smoke", "request": request()},
        "protocol: must be a string": {"protocol": 5, "request": request()},
        "request: is required": {"protocol": "neodim", "request": None},
        "request: must be an object": {"protocol": "neodim", "request": []},
        "no_such_field": {**submission(), "no_such_field": None},
        "temperature": submission(temperature=-1),
        "generated_tokens_count": submission(generated_tokens_count=2**31),
    }

    answers = {name: client.post("/v1/jobs", json=body) for name, body in wrong.items()}

    assert {each.status_code for each in answers.values()} == {400}
    assert all(name in each.json["message"] for name, each in answers.items())
