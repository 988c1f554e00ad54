"""Everything but completions, as the vendor's own client gets it from a running API."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from aleph_alpha_client import (
    AsyncClient,
    BatchSemanticEmbeddingRequest,
    BusyError,
    ChatRequest,
    Client,
    CustomGranularity,
    DetokenizationRequest,
    EmbeddingRequest,
    EvaluationRequest,
    ExplanationPostprocessing,
    ExplanationRequest,
    Message,
    Prompt,
    PromptGranularity,
    SemanticEmbeddingRequest,
    SemanticRepresentation,
    TargetGranularity,
    Text,
    TextPromptItemExplanation,
    TokenizationRequest,
    Tokens,
)
from aleph_alpha_client.chat import ChatStreamChunk, FinishReason, Role, StreamOptions, Usage
from aleph_alpha_client.explanation import (
    TargetPromptItemExplanation,
    TokenPromptItemExplanation,
    TokenScore,
)
from redis_server import running_redis
from scripted_worker import MODEL, ScriptedWorker
from test_api_server import running

pytestmark = pytest.mark.redis

KEY = "key-1"
TEXTS = ["Hello world", "Grüße aus Köln, 12345!\n\tnext <s>line</s>", "  😀 double  ", ""]
APPLE = Prompt.from_text("An apple")


@pytest.fixture(scope="module")
def redis_url():
    """Of a server that only these tests use."""
    with running_redis() as url:
        yield url


@pytest.fixture(scope="module")
def host(redis_url, tmp_path_factory):
    """Address of a running API that wants a key, with a worker behind it."""
    settings = {
        "api_key": (KEY,),
        "model_wait_s": 0,
        "semantic_embeddings": True,
        "body_limit_bytes": 2**21,
    }
    directory = tmp_path_factory.mktemp("api")
    with running(redis_url, directory, **settings) as (port, _), ScriptedWorker(redis_url, hands=3):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=["", "/v1"])
def client(request, host):
    """A client that was given the address in one of the ways that there are."""
    return Client(host=host + request.param, token=KEY, total_retries=0)


def asynchronously(host, act):
    """What a coroutine of the asynchronous client gives."""

    async def run():
        async with AsyncClient(host=host, token=KEY, total_retries=0) as client:
            return await act(client)

    return asyncio.run(run())


def chat_request(content="count", **fields):
    return ChatRequest(model=MODEL, messages=[Message(Role.User, content)], **fields)


def streamed(host, request):
    """All items of a chat's stream."""

    async def read(client):
        return [each async for each in client.chat_with_streaming(request, model=MODEL)]

    return asynchronously(host, read)


def explain(client, prompt=APPLE, **fields):
    request = ExplanationRequest(prompt=prompt, target=" a day", **fields)
    return client.explain(request, model=MODEL)


def test_the_version_is_one_that_the_client_works_with(client):
    client.validate_version()

    assert client.get_version() == "1.19.0"


def test_models_are_listed(client):
    (model,) = client.models()

    assert (model["name"], model["max_context_size"]) == (MODEL, 512)


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_those_of_the_fetched_tokenizer(client, text):
    tokenizer = client.tokenizer(MODEL)
    request = TokenizationRequest(text, tokens=True, token_ids=True)

    answer = client.tokenize(request, model=MODEL)

    encoding = tokenizer.encode(text)
    assert (answer.tokens, answer.token_ids) == (encoding.tokens, encoding.ids)
    back = client.detokenize(DetokenizationRequest(encoding.ids), model=MODEL)
    assert back.result == tokenizer.decode(encoding.ids)


def test_tokens_that_were_not_asked_for_are_not_told(client):
    answer = client.tokenize(TokenizationRequest("a", tokens=True, token_ids=False), model=MODEL)

    assert (bool(answer.tokens), answer.token_ids) == (True, None)


def test_a_text_is_evaluated(client):
    answer = client.evaluate(EvaluationRequest(APPLE, " a day"), model=MODEL)

    assert answer.result["log_probability"] == -4.0
    assert (answer.model_version, answer.num_tokens_prompt_total) == (MODEL, 3)


def test_a_target_is_explained_by_each_item(client):
    prompt = Prompt([Text.from_text("An apple "), Tokens.from_token_ids([7, 8])])

    answer = explain(client, prompt, control_factor=0.5)

    (explanation,) = answer.explanations
    text, ids, target = explanation.items
    assert isinstance(text, TextPromptItemExplanation)
    assert ids == TokenPromptItemExplanation(scores=[TokenScore(0.5)] * 2)
    assert target == TargetPromptItemExplanation(scores=[])
    (score,) = text.with_text(prompt.items[0]).scores
    assert (score.text, score.score) == ("An apple ", 0.5)


@pytest.mark.parametrize(
    "granularity", [*PromptGranularity, "word", CustomGranularity("###"), None]
)
def test_every_granularity_of_the_client_is_taken(client, granularity):
    fields = {
        "prompt_granularity": granularity,
        "target_granularity": TargetGranularity.Token,
        "postprocessing": ExplanationPostprocessing.Square,
        "normalize": True,
        "control_log_additive": False,
    }

    answer = explain(client, **fields)

    assert [each.target for each in answer.explanations] == ["a", "day"]


def test_states_are_told_by_layer_and_pooling(client):
    request = EmbeddingRequest(APPLE, layers=[0, -1], pooling=["mean", "last_token"], tokens=True)

    answer = client.embed(request, model=MODEL)

    assert answer.embeddings == {
        ("layer_0", "mean"): [0.0, 1.0],
        ("layer_0", "last_token"): [0.0, 1.0],
        ("layer_2", "mean"): [2.0, 1.0],
        ("layer_2", "last_token"): [2.0, 1.0],
    }
    assert (answer.tokens, answer.num_tokens_prompt_total) == (["An apple"], 1)


def test_meanings_are_vectors(client):
    one = SemanticEmbeddingRequest(APPLE, representation=SemanticRepresentation.Symmetric)
    # More than the client sends at once.
    many = BatchSemanticEmbeddingRequest([APPLE] * 130, SemanticRepresentation.Query)

    single = client.semantic_embed(one, model=MODEL)
    batch = client.batch_semantic_embed(many, model=MODEL)

    assert (single.embedding, single.num_tokens_prompt_total) == ([2.0, 1.0], 1)
    assert batch.embeddings == [[2.0, 3.0]] * 130
    assert batch.num_tokens_prompt_total == 390


def test_a_chat_is_answered(client):
    answer = client.chat(chat_request(maximum_tokens=4, top_k=1), model=MODEL)

    assert answer.message.content == "0 1 2 3 "
    assert (answer.message.role, answer.finish_reason) == (Role.Assistant, FinishReason.Length)


def test_a_chat_is_answered_whatever_the_client_sends_along(host):
    client = Client(host=host, token=KEY, nice=True, hosting="aleph-alpha", tags=["a", "b"])

    answer = client.chat(chat_request(steering_concepts=[], temperature=0.0), model=MODEL)

    assert answer.message.content == "0 1 2 3 "


@pytest.mark.parametrize("start", ["", "/v1"])
def test_a_streamed_chat_is_role_text_and_reason(host, start):
    first, *texts, last = streamed(host + start, chat_request(maximum_tokens=4))

    assert first == ChatStreamChunk(content="", role=Role.Assistant, tool_calls=None)
    assert all(isinstance(each, ChatStreamChunk) and each.role is None for each in texts)
    assert "".join(each.content for each in texts) == "0 1 2 3 "
    assert last is FinishReason.Length


def test_a_streamed_chat_ends_with_its_usage_where_that_is_asked_for(host):
    items = streamed(host, chat_request(stream_options=StreamOptions(include_usage=True)))

    assert items[-2:] == [
        FinishReason.Length,
        Usage(completion_tokens=4, prompt_tokens=3, total_tokens=7),
    ]


@pytest.mark.parametrize(
    ("call", "kind", "status", "code"),
    [
        (lambda c: c.chat(chat_request(steering_concepts=["a"]), MODEL), ValueError, 400, None),
        (lambda c: c.tokenizer("other"), RuntimeError, 404, "UNKNOWN_MODEL"),
        (
            lambda c: c.tokenize(TokenizationRequest("a", False, False), MODEL),
            ValueError,
            400,
            "INVALID_REQUEST",
        ),
        (
            lambda c: c.detokenize(DetokenizationRequest([10**6]), MODEL),
            ValueError,
            400,
            "INVALID_REQUEST",
        ),
        (
            lambda c: c.evaluate(EvaluationRequest(APPLE, ""), MODEL),
            ValueError,
            400,
            "INVALID_REQUEST",
        ),
        (
            lambda c: c.evaluate(EvaluationRequest(APPLE, "a"), "other"),
            RuntimeError,
            404,
            "UNKNOWN_MODEL",
        ),
        (
            lambda c: c.evaluate(
                EvaluationRequest(Prompt.from_text("fail store_unavailable"), "a"), MODEL
            ),
            BusyError,
            503,
            "STORE_UNAVAILABLE",
        ),
        (
            lambda c: c.embed(EmbeddingRequest(APPLE, layers=[], pooling=["mean"]), MODEL),
            ValueError,
            400,
            "INVALID_REQUEST",
        ),
    ],
)
def test_what_is_refused_is_the_clients_own_kind_of_error(client, call, kind, status, code):
    with pytest.raises(kind) as caught:
        call(client)

    assert caught.value.args[0] == status
    assert code is None or f'"code":"{code}"' in caught.value.args[1]


def test_no_key_is_an_error_of_permission(host):
    with pytest.raises(PermissionError):
        Client(host=host, token="other", total_retries=0).get_version()


def test_the_asynchronous_client_does_all_of_it(host):
    async def act(client):
        await client.validate_version()
        tokenizer = await client.tokenizer(MODEL)
        request = TokenizationRequest("Köln", tokens=True, token_ids=True)
        tokens = await client.tokenize(request, MODEL)
        text = await client.detokenize(DetokenizationRequest(tokens.token_ids), MODEL)
        evaluation = await client.evaluate(EvaluationRequest(APPLE, " a day"), MODEL)
        explanation = await client.explain(ExplanationRequest(APPLE, " a day"), MODEL)
        embedding = await client.embed(EmbeddingRequest(APPLE, [0], ["mean"]), MODEL)
        many = BatchSemanticEmbeddingRequest([APPLE] * 130, SemanticRepresentation.Document)
        batch = await client.batch_semantic_embed(many, model=MODEL)
        chat = await client.chat(chat_request(), MODEL)
        (model,) = await client.models()
        return [
            tokens.token_ids == tokenizer.encode("Köln").ids,
            text.result,
            evaluation.result["token_count"],
            explanation.explanations[0].target,
            list(embedding.embeddings),
            len(batch.embeddings),
            chat.message.content,
            model["name"],
        ]

    assert asynchronously(host, act) == [
        True, "Köln", 2, " a day", [("layer_0", "mean")], 130, "0 1 2 3 ", MODEL,
    ]  # fmt: skip


def test_long_texts_hold_up_nobody(host):
    client = Client(host=host, token=KEY, total_retries=0)
    request = TokenizationRequest("Grüße aus Köln " * 20_000, tokens=False, token_ids=True)
    client.tokenize(TokenizationRequest("a", tokens=False, token_ids=True), MODEL)
    answers = []
    worker = threading.Thread(target=lambda: answers.append(client.tokenize(request, MODEL)))
    waits = []
    other = Client(host=host, token=KEY, total_retries=0)

    worker.start()
    started = time.monotonic()
    while worker.is_alive():
        asked = time.monotonic()
        other.get_version()
        waits.append(time.monotonic() - asked)
    worker.join()

    assert len(answers[0].token_ids) > 100_000
    assert max(waits) < (time.monotonic() - started) / 2
