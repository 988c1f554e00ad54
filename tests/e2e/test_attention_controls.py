"""What a model makes of the Aleph Alpha API: controls, penalties, evaluations, explanations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from aleph_alpha_client import (
    AsyncClient,
    Client,
    CompletionRequest,
    CompletionResponse,
    ControlTokenOverlap,
    DetokenizationRequest,
    EmbeddingRequest,
    EvaluationRequest,
    ExplanationRequest,
    Prompt,
    PromptGranularity,
    TargetGranularity,
    Text,
    TextControl,
    TokenControl,
    TokenizationRequest,
    Tokens,
)
from aleph_alpha_client.chat import ChatRequest, Message, Role
from stack import TINY, Stack
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

pytestmark = pytest.mark.stack

MODEL = "gpt2"
PROMPT = "The old cat sees a red house near the river."
CATS = "The old cat sees a red cat near the cat"
CAT, RIVER = 333, 329
CLOSE = pytest.approx


@pytest.fixture(scope="module")
def client(tiny_stack: Stack) -> Client:
    return Client("token", tiny_stack.url, total_retries=0, request_timeout_seconds=60)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TINY / MODEL / "tokenizer.json"))


def request(prompt: Prompt | str = PROMPT, **fields: Any) -> CompletionRequest:
    prompt = Prompt.from_text(prompt) if isinstance(prompt, str) else prompt
    return CompletionRequest(prompt=prompt, **{"maximum_tokens": 8, **fields})


def complete(client: Client, prompt: Prompt | str = PROMPT, **fields: Any) -> CompletionResponse:
    return client.complete(request(prompt, **fields), MODEL)


def log_probs_of(client: Client, prompt: Prompt | str, **fields: Any) -> list[float]:
    """What the model makes of the prompt's own tokens behind the first."""
    fields |= {"maximum_tokens": 0, "echo": True, "tokens": True, "log_probs": 0}
    (told,) = complete(client, prompt, **fields).completions
    assert told.log_probs is not None
    assert told.log_probs[0] == {}
    return [value for each in told.log_probs[1:] for value in each.values() if value is not None]


def test_version_and_models_are_those_of_a_service_that_the_client_knows(client: Client) -> None:
    client.validate_version()
    (model,) = client.models()

    assert (model["name"], model["max_context_size"]) == (MODEL, 250)
    assert model["image_support"] is False


@pytest.mark.parametrize(
    "text", ["Hello world", "Gr\u00fc\u00dfe, 123!\n\tx", " two  spaces ", "\U0001f600"]
)
def test_tokenizer_that_is_downloaded_agrees_with_the_service(client: Client, text: str) -> None:
    own = client.tokenizer(MODEL).encode(text)

    told = client.tokenize(TokenizationRequest(text, tokens=True, token_ids=True), MODEL)
    back = client.detokenize(DetokenizationRequest(own.ids), MODEL)

    assert (told.token_ids, told.tokens) == (own.ids, own.tokens)
    assert back.result == text


def test_echo_tells_the_models_own_log_probabilities(client: Client, tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(PROMPT).ids
    model = AutoModelForCausalLM.from_pretrained(TINY / MODEL, dtype=torch.float32).eval()
    with torch.inference_mode():
        every = model(torch.tensor([ids])).logits[0].log_softmax(-1)

    expected = [float(every[n, token]) for n, token in enumerate(ids[1:])]
    assert log_probs_of(client, PROMPT) == CLOSE(expected, abs=1e-4)


def factors(ids: Sequence[int], by_place: Mapping[int, float]) -> Prompt:
    return Prompt.from_tokens(ids, [TokenControl(*each) for each in by_place.items()])


@pytest.mark.parametrize("is_additive", [True, False])
def test_controls_act_on_words_and_on_nothing_before_them(
    client: Client, tokenizer: Tokenizer, is_additive: bool
) -> None:
    ids = tokenizer.encode(CATS).ids
    place, start = ids.index(CAT), CATS.index("cat")
    mode = {"control_log_additive": is_additive}
    plain = log_probs_of(client, CATS)

    neutral = log_probs_of(client, Prompt.from_text(CATS, [TextControl(start, 3, 1.0)]), **mode)
    complete_overlap = TextControl(start, 3, 0.0, ControlTokenOverlap.Complete)
    by_word = log_probs_of(client, Prompt.from_text(CATS, [complete_overlap]), **mode)
    by_id = log_probs_of(client, factors(ids, {place: 0.0}), **mode)

    assert neutral == CLOSE(plain, abs=1e-5)
    assert by_word == CLOSE(by_id, abs=1e-5)
    assert by_word[:place] == CLOSE(plain[:place], abs=1e-5)
    assert max(abs(a - b) for a, b in zip(by_word, plain, strict=True)) > 1e-3


def test_controls_follow_their_words_through_optimisation(client: Client) -> None:
    start = CATS.index("cat")
    plain = log_probs_of(client, Prompt.from_text(CATS, [TextControl(start, 3, 0.0)]))

    spaced = Prompt.from_text(f"  {CATS} ", [TextControl(start + 2, 3, 0.0)])
    answer = complete(client, spaced, maximum_tokens=1)
    parts = Prompt([Text("The old", []), Text(CATS[7:], [TextControl(start - 7, 3, 0.0)])])

    assert log_probs_of(client, spaced) == CLOSE(plain, abs=1e-5)
    assert log_probs_of(client, parts) == CLOSE(plain, abs=1e-5)
    assert answer.optimized_prompt is not None
    assert answer.optimized_prompt.items[0].text == CATS


def test_a_threshold_reaches_like_tokens_also_generated_ones(
    client: Client, tokenizer: Tokenizer
) -> None:
    ids = tokenizer.encode(CATS).ids
    first, *_ = places = [n for n, each in enumerate(ids) if each == CAT]
    threshold = {"contextual_control_threshold": 0.99}

    all_three = log_probs_of(client, factors(ids, dict.fromkeys(places, 0.0)))
    reached = log_probs_of(client, factors(ids, {first: 0.0}), **threshold)
    (forced,) = complete(
        client,
        factors(ids, {first: 0.0}),
        maximum_tokens=4,
        log_probs=0,
        logit_bias={CAT: 300.0},
        **threshold,
    ).completions
    scored = log_probs_of(client, factors([*ids, *[CAT] * 4], {first: 0.0}), **threshold)

    assert reached == CLOSE(all_three, abs=1e-5)
    told = [value for each in forced.log_probs or () for value in each.values()]
    assert told == CLOSE(scored[-4:], abs=1e-4)


def test_penalties_choose_between_two_tokens_as_they_are_told_to(client: Client) -> None:
    bias = {CAT: 400.0, RIVER: 300.0}

    def letters(**fields: Any) -> str:
        (told,) = complete(
            client, maximum_tokens=5, tokens=True, logit_bias=bias, **fields
        ).completions
        return "".join("A" if each == " cat" else "B" for each in told.completion_tokens)

    assert letters() == "AAAAA"
    assert letters(presence_penalty=150.0) == "ABAAA"
    assert letters(frequency_penalty=150.0) == "ABABA"
    assert letters(presence_penalty=150.0, penalty_exceptions=[" cat"]) == "AAAAA"
    assert letters(presence_penalty=1.0, use_multiplicative_presence_penalty=True) == "ABAAA"
    assert letters(sequence_penalty=150.0) == "AABAA"
    assert letters(sequence_penalty=150.0, sequence_penalty_min_length=3) == "AAABA"


def test_inclusion_and_exclusion_hold(client: Client) -> None:
    options = [" river", " red house"]
    (included,) = complete(client, completion_bias_inclusion=options).completions
    greedy = complete(client).completions[0].completion
    (excluded,) = complete(client, completion_bias_exclusion=[greedy[2:5]]).completions

    assert (included.completion in options, included.finish_reason) == (True, "end_of_text")
    assert greedy[2:5] not in excluded.completion


def test_an_evaluation_is_the_sum_of_what_echo_tells(client: Client) -> None:
    start = CATS.index("cat")
    prompt = Prompt.from_text(CATS, [TextControl(start, 3, 0.0)])
    both = Prompt([*prompt.items, Tokens([CAT, CAT], [])])

    answer = client.evaluate(EvaluationRequest(prompt, " cat cat"), MODEL)

    expected = log_probs_of(client, both, disable_optimizations=True)[-2:]
    assert answer.result["log_probability"] == CLOSE(sum(expected), abs=1e-4)
    assert answer.result["token_count"] == 2
    assert answer.num_tokens_prompt_total == len(expected) + len(log_probs_of(client, CATS)) + 1


def test_an_explanation_scores_what_suppressing_a_word_does(client: Client) -> None:
    prompt = Prompt.from_text(CATS)
    start = CATS.index("cat")

    def loss(factor: float) -> float:
        controlled = Prompt.from_text(CATS, [TextControl(start, 3, factor)])
        answer = client.evaluate(EvaluationRequest(controlled, " river"), MODEL)
        return -answer.result["log_probability"]

    answer = client.explain(
        ExplanationRequest(prompt, " river", prompt_granularity=PromptGranularity.Word), MODEL
    )
    by_token = client.explain(
        ExplanationRequest(prompt, " river", target_granularity=TargetGranularity.Token), MODEL
    )

    (explanation,) = answer.explanations
    scores = explanation.items[0].scores
    assert [CATS[each.start : each.start + each.length] for each in scores] == CATS.split()
    assert scores[2].score == CLOSE(loss(0.1) - loss(1.0), abs=1e-4)
    assert len(by_token.explanations) >= 1


def test_embeddings_have_the_layers_and_poolings_asked_for(client: Client) -> None:
    answer = client.embed(
        EmbeddingRequest(
            Prompt.from_text(CATS), layers=[0, -1], pooling=["mean", "max"], tokens=True
        ),
        MODEL,
    )

    assert {layer for layer, _ in answer.embeddings} == {"layer_0", "layer_2"}
    assert {pooling for _, pooling in answer.embeddings} == {"mean", "max"}
    assert answer.tokens is not None
    assert "".join(answer.tokens) == CATS


def test_chat_is_answered_in_whole_and_in_parts(tiny_stack: Stack, client: Client) -> None:
    ask = ChatRequest(
        MODEL, messages=[Message(role=Role.User, content=PROMPT)], maximum_tokens=8, temperature=0.0
    )

    async def parts() -> list[Any]:
        async with AsyncClient("token", tiny_stack.url, total_retries=0) as other:
            return [each async for each in other.chat_with_streaming(ask, MODEL)]

    plain = client.chat(ask, MODEL)
    texts = [each.content for each in asyncio.run(parts()) if getattr(each, "content", None)]

    assert "".join(texts) == plain.message.content
