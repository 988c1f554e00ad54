"""Calls of the completion API: what is sent, and what their answers become."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted_server import KINDS, ScriptedServer, drops, says, streams, use

from neodim_client import (
    BrokenStream,
    CompletionRequest,
    CompletionResponse,
    CompletionSummary,
    DetokenizationRequest,
    EmbeddingRequest,
    EvaluationRequest,
    ExplanationRequest,
    ImageScore,
    InvalidAnswer,
    Prompt,
    RequestRejected,
    StreamChunk,
    StreamSummary,
    TextScore,
    TokenizationRequest,
)

pytestmark = pytest.mark.parametrize("kind", KINDS)

PROMPT = Prompt.from_text("Hello world")
REQUEST = CompletionRequest(PROMPT, log_probs=0, tokens=True, echo=True, maximum_tokens=0)
COMPLETED = {
    "completions": [
        {
            "index": 0,
            "log_probs": [{}, {" world": -6.125}],
            "completion": " Hello world",
            "raw_completion": " Hello world",
            "completion_tokens": [" Hello", " world"],
            "finish_reason": "maximum_tokens",
        }
    ],
    "model_version": "2022-04",
    "optimized_prompt": [{"type": "text", "data": "Hello world", "controls": []}],
    "num_tokens_prompt_total": 2,
    "num_tokens_generated": 0,
}
SCORES = [{"a": -1}]
SUMMARY = {"num_tokens_prompt_total": 1, "num_tokens_generated": 7}
ITEMS = tuple(
    b"data: %b\n\n" % json.dumps({"type": kind, **fields}, ensure_ascii=False).encode()
    for kind, fields in (
        ("stream_chunk", {"index": 0, "completion": " The\u2028 New", "log_probs": SCORES}),
        ("stream_summary", {"index": 0, "model_version": "1", "finish_reason": "end_of_text"}),
        ("completion_summary", SUMMARY),
    )
)


def stream(client: Any) -> Any:
    return client.complete_with_streaming(REQUEST, "m")


def test_completion_is_asked_for_and_read(kind: str) -> None:
    with ScriptedServer(says(200, COMPLETED)) as server:
        answer = use(kind, server.url, lambda client: client.complete(REQUEST, "m"))

    (call,) = server.calls
    assert (call.method, call.path, call.json["model"]) == ("POST", "/complete", "m")
    assert call.json["prompt"] == [{"type": "text", "data": "Hello world", "controls": []}]
    assert "stream" not in call.json
    assert answer.completions[0].log_probs == [{}, {" world": -6.125}]
    assert answer.optimized_prompt == PROMPT
    assert CompletionResponse.from_json(json.loads(json.dumps(answer.to_json()))) == answer


@pytest.mark.parametrize("path", ["/", "/behind/a/proxy/"])
def test_address_may_have_a_path(kind: str, path: str) -> None:
    with ScriptedServer(says(200, b"1.19.0", Content_Type="text/plain")) as server:
        version = use(kind, server.url + path, lambda client: client.version())

    assert version == "1.19.0"
    assert server.calls[0].path == path.rstrip("/") + "/version"


def test_stream_is_told_item_by_item(kind: str) -> None:
    cut = b"".join(ITEMS)
    pieces = [cut[n : n + 7] for n in range(0, len(cut), 7)]
    with ScriptedServer(streams(*pieces)) as server:
        items = use(kind, server.url, stream)

    assert server.calls[0].json["stream"] is True
    assert items == [
        StreamChunk(0, " The\u2028 New", log_probs=SCORES),
        StreamSummary(0, "1", "end_of_text"),
        CompletionSummary(1, 7),
    ]


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("n_items", [0, 1, 2])
def test_stream_that_breaks_off_is_no_end(kind: str, n_items: int, is_whole: bool) -> None:
    cut = streams(b":\n\n", *ITEMS[:n_items], ITEMS[n_items][:-2], is_whole=is_whole)
    with ScriptedServer(cut) as server, pytest.raises(BrokenStream):
        use(kind, server.url, stream)

    assert len(server.calls) == 1


def test_stream_is_asked_for_again_until_it_begins(kind: str) -> None:
    with ScriptedServer(drops, says(503, {"error": "no"}), streams(*ITEMS)) as server:
        items = use(kind, server.url, stream)

    assert len(items) == len(server.calls) == 3


def test_refused_stream_raises_with_the_servers_words(kind: str) -> None:
    refusal = says(400, {"error": "best_of: not with stream", "code": "INVALID_REQUEST"})
    with ScriptedServer(refusal) as server, pytest.raises(RequestRejected, match="best_of: not"):
        use(kind, server.url, stream)


def test_stream_item_of_an_unknown_type_is_an_error(kind: str) -> None:
    odd = streams(b'data: {"type":"surprise"}\n\n')
    with ScriptedServer(odd) as server, pytest.raises(InvalidAnswer, match="surprise"):
        use(kind, server.url, stream)


def test_evaluation_is_read(kind: str) -> None:
    result = {
        "log_probability": -11.5,
        "log_perplexity": 11.5,
        "log_perplexity_per_token": 11.5,
        "log_perplexity_per_character": 2.3,
        "correct_greedy": False,
        "token_count": 1,
        "character_count": 5,
        "completion": ",",
        "something_new": 1,
    }
    body = {"model_version": "1", "result": result, "num_tokens_prompt_total": 2}
    with ScriptedServer(says(200, body)) as server:
        request = EvaluationRequest(PROMPT, " day")
        answer = use(kind, server.url, lambda client: client.evaluate(request, "m"))

    assert server.calls[0].path == "/evaluate"
    assert (answer.result.log_probability, answer.result.completion) == (-11.5, ",")


def test_explanation_is_read(kind: str) -> None:
    rect = {"left": 0.0, "top": 0.25, "width": 0.5, "height": 0.5}
    items = [
        {"type": "text", "scores": [{"start": 0, "length": 17, "score": 1.875}]},
        {"type": "image", "scores": [{"rect": rect, "score": 0.5}]},
        {"type": "token_ids", "scores": [0.14, -1]},
        {"type": "target", "scores": []},
    ]
    body = {"model_version": "1", "explanations": [{"target": " pizza", "items": items}]}
    with ScriptedServer(says(200, body)) as server:
        request = ExplanationRequest(PROMPT, " pizza")
        answer = use(kind, server.url, lambda client: client.explain(request, "m"))

    (explanation,) = answer.explanations
    assert [each.type for each in explanation.items] == ["text", "image", "token_ids", "target"]
    assert [each.scores for each in explanation.items] == [
        (TextScore(0, 17, 1.875),),
        (ImageScore(0.0, 0.25, 0.5, 0.5, 0.5),),
        (0.14, -1.0),
        (),
    ]


def test_embedding_is_read(kind: str) -> None:
    body = {
        "model_version": "1",
        "embeddings": {"layer_0": {"mean": [1.0], "max": [2.0]}, "layer_4": {"mean": [3.0]}},
        "tokens": None,
        "num_tokens_prompt_total": 1,
    }
    with ScriptedServer(says(200, body)) as server:
        request = EmbeddingRequest(PROMPT, layers=[0, -1], pooling=["mean", "max"])
        answer = use(kind, server.url, lambda client: client.embed(request, "m"))

    assert answer.embeddings["layer_0", "max"] == [2.0]
    assert answer.embeddings["layer_4", "mean"] == [3.0]
    assert answer.tokens is None


def test_tokens_and_text_are_read(kind: str) -> None:
    tokens = {"tokens": ["\u0120Hello"], "token_ids": [49222]}
    with ScriptedServer(says(200, tokens), says(200, {"result": "Hello"})) as server:
        request = TokenizationRequest(" Hello")
        told = use(kind, server.url, lambda client: client.tokenize(request, "m"))
        back = DetokenizationRequest(told.token_ids)
        text = use(kind, server.url, lambda client: client.detokenize(back, "m"))

    assert (told.tokens, text.result) == (["\u0120Hello"], "Hello")
    assert server.calls[1].json == {"model": "m", "token_ids": [49222]}


def test_models_are_read(kind: str) -> None:
    body = [
        {"name": "m", "max_context_size": 8, "aligned": True, "maximum_completion_tokens": None},
        {"name": "n", "max_context_size": 9, "image_support": True, "description": "with eyes"},
    ]
    with ScriptedServer(says(200, body)) as server:
        models = use(kind, server.url, lambda client: client.models())

    assert server.calls[0].method == "GET"
    assert [(each.name, each.max_context_size) for each in models] == [("m", 8), ("n", 9)]
    assert (models[0].is_aligned, models[1].image_support) == (True, True)
    assert models[1].description == "with eyes"
