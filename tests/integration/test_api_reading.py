"""Evaluations, explanations and embeddings over HTTP, with a worker that has no model."""

from __future__ import annotations

import time

import pytest
from api_client import make_client
from scripted_worker import MODEL, ScriptedWorker

pytestmark = pytest.mark.redis

EVALUATE = {"model": MODEL, "prompt": "An apple", "completion_expected": " a day"}
EXPLAIN = {"model": MODEL, "prompt": "An apple", "target": " a day"}
EMBED = {"model": MODEL, "prompt": "An apple", "layers": [0, -1], "pooling": ["mean", "max"]}
SEMANTIC = {"model": MODEL, "prompt": "An apple", "representation": "query"}
BATCH = {"model": MODEL, "prompts": ["An apple", "a day"], "representation": "document"}
REQUESTS = {
    "/evaluate": EVALUATE,
    "/explain": EXPLAIN,
    "/embed": EMBED,
    "/semantic_embed": SEMANTIC,
    "/batch_semantic_embed": BATCH,
}
PROTOCOLS = {
    "/evaluate": "aleph_alpha_evaluation",
    "/explain": "aleph_alpha_explanation",
    "/embed": "aleph_alpha_embedding",
    "/semantic_embed": "aleph_alpha_semantic_embedding",
    "/batch_semantic_embed": "aleph_alpha_batch_semantic_embedding",
}
PATHS = list(REQUESTS)


@pytest.fixture
def client(redis_url):
    with ScriptedWorker(redis_url):
        yield make_client(redis_url, model_wait_s=0, semantic_embeddings=True)


def until_it_ends(client, path):
    for _ in range(1000):
        job = client.get(path).json
        if job["state"] in ("succeeded", "failed"):
            return job
        time.sleep(0.01)
    raise AssertionError("the job does not end")


def test_a_text_is_evaluated(client):
    response = client.post("/evaluate", json=EVALUATE)

    assert (response.status_code, response.content_type) == (200, "application/json")
    assert response.json == {
        "model_version": MODEL,
        "result": {
            "log_probability": -4.0,
            "log_perplexity": 4.0,
            "log_perplexity_per_token": 2.0,
            "log_perplexity_per_character": 4 / 6,
            "correct_greedy": False,
            "token_count": 2,
            "character_count": 6,
            "completion": "!!",
        },
        "num_tokens_prompt_total": 3,
    }


def test_a_target_is_explained_by_each_item(client):
    items = [
        {"type": "text", "data": "An apple "},
        {"type": "token_ids", "data": [7, 8]},
    ]

    response = client.post("/explain", json={**EXPLAIN, "prompt": items, "control_factor": 0.5})

    assert response.json == {
        "model_version": MODEL,
        "explanations": [
            {
                "target": " a day",
                "items": [
                    {"type": "text", "scores": [{"start": 0, "length": 9, "score": 0.5}]},
                    {"type": "token_ids", "scores": [0.5, 0.5]},
                    {"type": "target", "scores": []},
                ],
            }
        ],
    }


def test_each_token_of_a_target_is_explained_by_the_earlier_ones_too(client):
    response = client.post("/explain", json={**EXPLAIN, "target_granularity": "token"})

    first, second = response.json["explanations"]
    assert (first["target"], second["target"]) == ("a", "day")
    assert first["items"][-1] == {"type": "target", "scores": []}
    assert second["items"][-1]["scores"] == [{"start": 0, "length": 1, "score": 1.0}]


def test_states_are_told_by_layer_and_pooling(client):
    response = client.post("/embed", json={**EMBED, "tokens": True})

    assert response.json == {
        "model_version": MODEL,
        "embeddings": {
            "layer_0": {"mean": [0.0, 1.0], "max": [0.0, 1.0]},
            "layer_2": {"mean": [2.0, 1.0], "max": [2.0, 1.0]},
        },
        "tokens": ["An apple"],
        "num_tokens_prompt_total": 1,
    }


def test_a_meaning_is_one_vector_of_text_and_brackets(client):
    response = client.post("/semantic_embed", json=SEMANTIC)

    assert response.json == {
        "model_version": MODEL,
        "embedding": [2.0, 3.0],
        "num_tokens_prompt_total": 3,
    }


def test_meanings_are_vectors_in_the_order_of_their_texts(client):
    response = client.post("/batch_semantic_embed", json=BATCH)

    assert response.json == {
        "model_version": MODEL,
        "embeddings": [[2.0, 3.0], [2.0, 3.0]],
        "num_tokens_prompt_total": 6,
    }


@pytest.mark.parametrize("path", PATHS)
def test_a_path_may_begin_with_a_version(client, path):
    plain, versioned = (client.post(f"{start}{path}", json=REQUESTS[path]) for start in ("", "/v1"))

    assert plain.status_code == 200
    assert plain.json == versioned.json


@pytest.mark.parametrize("path", PATHS)
def test_a_job_answers_as_the_endpoint(client, path):
    answer = client.post(path, json=REQUESTS[path]).json
    submission = {"protocol": PROTOCOLS[path], "request": REQUESTS[path]}

    submitted = client.post("/v1/jobs", json=submission)

    job = until_it_ends(client, submitted.headers["Location"])
    assert (submitted.status_code, job["protocol"]) == (202, PROTOCOLS[path])
    assert job["result"] == answer


@pytest.mark.parametrize("path", PATHS)
def test_a_client_may_prefer_a_job(client, path):
    accepted = client.post(path, json=REQUESTS[path], headers={"Prefer": "respond-async"})

    job = until_it_ends(client, accepted.headers["Location"])
    assert (accepted.status_code, job["state"]) == (202, "succeeded")


@pytest.mark.parametrize("start", ["", "/v1"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("fields", "status", "code", "sentence"),
    [
        ({"model": "other"}, 404, "UNKNOWN_MODEL", "model: 'other' is not served here; known:"),
        ({"control_log_additive": 1}, 400, "INVALID_REQUEST", "control_log_additive: must be"),
        ({"model": None}, 400, "INVALID_REQUEST", "model: is required"),
    ],
)
def test_what_is_refused_says_why(client, start, path, fields, status, code, sentence):
    response = client.post(f"{start}{path}", json={**REQUESTS[path], **fields})

    assert (response.status_code, response.json["code"]) == (status, code)
    assert response.json.keys() == {"error", "code"}
    assert response.json["error"].startswith(sentence)


@pytest.mark.parametrize("path", ["/evaluate", "/explain"])
@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("prompt_too_long", 400, "INVALID_REQUEST"),
        ("missing_capability", 400, "MISSING_CAPABILITY"),
        ("out_of_memory", 500, "OUT_OF_MEMORY"),
    ],
)
def test_what_a_worker_refuses_is_an_error(client, path, code, status, told):
    response = client.post(path, json={**REQUESTS[path], "prompt": f"fail {code}"})

    assert (response.status_code, response.json["code"]) == (status, told)


@pytest.mark.parametrize("path", PATHS)
def test_a_model_without_a_worker_is_loading(redis_url, path):
    client = make_client(redis_url, model_wait_s=0, semantic_embeddings=True)

    response = client.post(path, json=REQUESTS[path])

    assert (response.status_code, response.json["code"]) == (503, "MODEL_LOADING")
    assert int(response.headers["Retry-After"]) > 0


@pytest.mark.parametrize("path", ["/semantic_embed", "/v1/batch_semantic_embed"])
def test_meanings_are_not_offered_unless_the_model_is_for_them(redis_url, path):
    client = make_client(redis_url)

    response = client.post(path, json=REQUESTS[path.removeprefix("/v1")])

    assert (response.status_code, response.json["code"]) == (400, "MISSING_CAPABILITY")


@pytest.mark.parametrize("path", PATHS)
def test_other_methods_are_not_allowed(client, path):
    response = client.get(path)

    assert (response.status_code, response.json["code"]) == (405, "METHOD_NOT_ALLOWED")
