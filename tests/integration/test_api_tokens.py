"""Tokens and tokenizers over HTTP, of a tokenizer that a worker has published."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from api_client import make_client
from scripted_worker import MODEL, TOKENIZER, ScriptedWorker
from tokenizers import Tokenizer

from workers.contract import keys
from workers.contract.fleet import Fleet, WorkerCard, WorkerKind, WorkerState
from workers.contract.redis_client import connect
from workers.contract.tokenizer_store import TOKENIZER_TTL_S, TokenizerFile, TokenizerStore

pytestmark = pytest.mark.redis

GPT2 = TOKENIZER.parents[1] / "gpt2" / "tokenizer.json"
TEXTS = ["", "hello", "Grüße aus Köln!\n\t", "<s>an end</s>  ", "😀👩‍👩‍👧", "\u0000 \u202e x"]
CARD = WorkerCard(
    name="other", model="pictures", state=WorkerState.READY, slots=1, max_length=0,
    host="nowhere", pid=1, started_ms=0, kind=WorkerKind.IMAGE,
)  # fmt: skip


@pytest.fixture
def client(redis_url):
    with ScriptedWorker(redis_url):
        yield make_client(redis_url, model_wait_s=0)


@pytest.fixture
def tokenizer():
    return Tokenizer.from_file(str(TOKENIZER))


def publish(redis_url, path, model=MODEL):
    TokenizerStore(connect(redis_url)).keep(model, TokenizerFile.of(path.read_text()))


def tokenize(client, prompt="hello", **fields):
    body = {"model": MODEL, "prompt": prompt, "tokens": True, "token_ids": True, **fields}
    return client.post("/tokenize", json=body)


def detokenize(client, ids, model=MODEL):
    return client.post("/detokenize", json={"model": model, "token_ids": ids})


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_the_tokenizer_is_the_models_own_file(client, prefix):
    response = client.get(f"{prefix}/models/{MODEL}/tokenizer")

    assert (response.status_code, response.content_type) == (200, "application/json")
    assert response.text == TOKENIZER.read_text()


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_tokenised_as_the_fetched_tokenizer_does(client, text):
    fetched = Tokenizer.from_str(client.get(f"/models/{MODEL}/tokenizer").text)

    told = tokenize(client, text).json

    encoding = fetched.encode(text)
    assert told == {"tokens": encoding.tokens, "token_ids": encoding.ids}


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_become_text_as_the_fetched_tokenizer_does_it(client, tokenizer, text):
    ids = tokenizer.encode(text).ids

    assert detokenize(client, ids).json == {"result": tokenizer.decode(ids)}


@pytest.mark.parametrize("path", ["/tokenize", "/v1/tokenize"])
@pytest.mark.parametrize("asked", ["tokens", "token_ids"])
def test_what_was_not_asked_for_is_left_out(client, path, asked):
    body = {"model": MODEL, "prompt": "hello", asked: True, "hosting": None, "tags": ["x"]}

    assert client.post(path, json=body).json.keys() == {asked}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"tokens": False, "token_ids": None}, "tokens: must be true, or token_ids: else there"),
        ({"prompt": ["a"]}, "prompt: must be a string, not a list"),
        ({"prompt": None}, "prompt: is required"),
        ({"token_ids": 1}, "token_ids: must be true or false, not 1"),
    ],
)
def test_what_cannot_be_tokenised_is_refused(client, fields, sentence):
    response = tokenize(client, **fields)

    assert (response.status_code, response.json["code"]) == (400, "INVALID_REQUEST")
    assert response.json["error"].startswith(sentence)


@pytest.mark.parametrize("path", ["/detokenize", "/v1/detokenize"])
@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        ([5, 100_000], "the model has no token 100000"),
        ([-1], "must be at least 0, not -1"),
        ([2**40], "must be at most"),
        (["5"], 'must be an integer, not "5"'),
        ("5", 'must be a list of token ids, not "5"'),
    ],
)
def test_ids_that_the_vocabulary_does_not_have_are_refused(client, path, ids, problem):
    response = client.post(path, json={"model": MODEL, "token_ids": ids})

    assert (response.status_code, response.json["code"]) == (400, "INVALID_REQUEST")
    assert response.json["error"].startswith(f"token_ids: {problem}")


def test_no_ids_are_no_text(client):
    assert detokenize(client, []).json == {"result": ""}


def test_an_unknown_model_has_no_tokens(client):
    answers = [
        tokenize(client, model="a/b"),
        detokenize(client, [1], model="a/b"),
        client.get("/models/a/b/tokenizer"),
        client.get("/v1/models/a/b/tokenizer"),
    ]

    for each in answers:
        assert (each.status_code, each.json["code"]) == (404, "UNKNOWN_MODEL")
        assert each.json["error"] == f"model: 'a/b' is not served here; known: {MODEL}"


def test_a_model_may_have_slashes_in_its_name(redis_url):
    publish(redis_url, GPT2, "some/one's/model")
    Fleet(connect(redis_url)).report(replace(CARD, model="some/one's/model", kind=WorkerKind.TEXT))
    client = make_client(redis_url)

    response = client.get("/v1/models/some/one's/model/tokenizer")

    assert response.text == GPT2.read_text()
    assert client.get("/v1/models/some/one's/model").json["id"] == "some/one's/model"


def test_texts_are_tokenised_while_no_worker_is_ready(redis_url, tokenizer):
    publish(redis_url, TOKENIZER)

    told = tokenize(make_client(redis_url)).json

    assert told["token_ids"] == tokenizer.encode("hello").ids


def test_a_model_that_has_not_told_its_tokenizer_is_loading(redis_url):
    client = make_client(redis_url)

    for response in (tokenize(client), client.get(f"/models/{MODEL}/tokenizer")):
        assert (response.status_code, response.json["code"]) == (503, "MODEL_LOADING")
        assert int(response.headers["Retry-After"]) > 0


def test_a_ready_model_without_a_file_cannot_do_it(redis_url):
    Fleet(connect(redis_url)).report(replace(CARD, model=MODEL, kind=WorkerKind.TEXT))

    response = tokenize(make_client(redis_url))

    assert (response.status_code, response.json["code"]) == (400, "MISSING_CAPABILITY")


def test_a_model_for_pictures_has_no_tokens(redis_url):
    Fleet(connect(redis_url)).report(CARD)

    response = tokenize(make_client(redis_url), model="pictures")

    assert (response.status_code, response.json["code"]) == (404, "UNKNOWN_MODEL")


def test_a_tokenizer_is_parsed_once_and_again_when_it_has_changed(client, redis_url, monkeypatch):
    parsed = []
    parse = TokenizerFile.unpack
    monkeypatch.setattr(TokenizerFile, "unpack", lambda file: parsed.append(file) or parse(file))

    first = [tokenize(client).json for _ in range(3)]
    publish(redis_url, GPT2)
    second = [tokenize(client).json for _ in range(3)]

    assert len(parsed) == 2
    assert first == [first[0]] * 3
    expected = Tokenizer.from_file(str(GPT2)).encode("hello")
    assert second == [{"tokens": expected.tokens, "token_ids": expected.ids}] * 3


def test_a_worker_makes_its_tokenizer_last(redis_url):
    redis, key = connect(redis_url), keys.tokenizer(MODEL)
    publish(redis_url, TOKENIZER)
    redis.expire(key, 5)

    publish(redis_url, TOKENIZER)

    assert redis.ttl(key) > TOKENIZER_TTL_S - 60


def test_a_tokenizer_that_got_lost_is_published_again(redis_url):
    publish(redis_url, TOKENIZER)
    connect(redis_url).flushall()

    publish(redis_url, TOKENIZER)

    kept = TokenizerStore(connect(redis_url)).get(MODEL)
    assert kept is not None
    assert kept.unpack() == TOKENIZER.read_text()


def test_a_tokenizer_that_is_kept_already_is_not_written_again(redis_url):
    redis, key = connect(redis_url), keys.tokenizer(MODEL)
    publish(redis_url, TOKENIZER)
    redis.hset(key, "packed", "as it was")

    publish(redis_url, TOKENIZER)

    assert redis.hget(key, "packed") == b"as it was"


@pytest.mark.parametrize("path", ["/version", "/v1/version"])
def test_the_version_is_plain_text(client, path):
    response = client.get(path)

    assert response.content_type == "text/plain; charset=utf-8"
    assert response.text == "1.19.0"


@pytest.mark.parametrize("path", ["/models_available", "/v1/models_available"])
def test_models_are_listed_with_every_field(client, path):
    assert client.get(path).json == [
        {
            "name": MODEL,
            "description": f"{MODEL}, of the project Neodim",
            "max_context_size": 512,
            "hostings": [],
            "image_support": False,
            "qa_support": False,
            "summarization_support": False,
            "embedding_types": [],
            "maximum_completion_tokens": None,
            "aligned": False,
        }
    ]


def test_a_model_that_reads_pictures_says_so(redis_url):
    card = replace(CARD, model=MODEL, kind=WorkerKind.TEXT, max_length=9, reads_pictures=True)
    Fleet(connect(redis_url)).report(card)

    (model,) = make_client(redis_url).get("/models_available").json

    assert (model["image_support"], model["max_context_size"]) == (True, 9)


def test_a_model_for_pictures_is_not_listed(redis_url):
    Fleet(connect(redis_url)).report(replace(CARD, max_length=512))

    listed = make_client(redis_url, max_length=100).get("/models_available").json

    assert [each["name"] for each in listed] == [MODEL]


def test_a_model_is_listed_as_soon_as_its_context_is_known(redis_url):
    client = make_client(redis_url)
    before = client.get("/models_available").json

    with ScriptedWorker(redis_url):
        time.sleep(1.1)  # what is known of workers is believed for a second
        after = client.get("/models_available").json

    assert (before, len(after)) == ([], 1)
