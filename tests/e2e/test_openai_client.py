"""The service as OpenAI's own package sees it, unmodified, and as evaluation harnesses ask it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
import requests
from stack import TINY, Stack
from transformers import AutoModelForCausalLM, AutoTokenizer

pytestmark = pytest.mark.stack

MODEL = "gpt2"
PROMPT = "The old cat sees a red house near the river."
MESSAGES: Any = [{"role": "user", "content": PROMPT}]
GREEDY: dict[str, Any] = {"model": MODEL, "temperature": 0, "max_tokens": 16}
SAMPLED: dict[str, Any] = {"model": MODEL, "temperature": 1.2, "seed": 11, "max_tokens": 24}
RICH = [
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u6211\u4eec\u4eca\u5929",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f468\u200d\U0001f469",
    "e\u0301a\u0301o\u0301 e\u0301a\u0301",
    "\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea",
]


@pytest.fixture
def client(tiny_stack: Stack) -> Iterator[openai.OpenAI]:
    base = f"{tiny_stack.url}/v1"
    with openai.OpenAI(base_url=base, api_key="none", max_retries=0, timeout=60) as client:
        yield client


def spell(text: str) -> dict[str, int]:
    """Biases that make the tokens of a text come, so that a random model speaks of it."""
    tokenizer = AutoTokenizer.from_pretrained(TINY / MODEL)
    return {str(token): 9 for token in tokenizer.encode(text)}


def test_chat_is_answered(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(messages=MESSAGES, **GREEDY)

    assert (answer.object, answer.model, len(answer.choices)) == ("chat.completion", MODEL, 1)
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16
    assert answer.choices[0].logprobs is None


def test_stream_adds_up_to_the_plain_answer(client: openai.OpenAI) -> None:
    plain = client.chat.completions.create(messages=MESSAGES, **SAMPLED)

    chunks = list(client.chat.completions.create(messages=MESSAGES, stream=True, **SAMPLED))

    parts = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "".join(parts) == plain.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == plain.choices[0].finish_reason
    assert chunks[-1].usage == plain.usage


def test_stream_helper_accumulates_the_same_message(client: openai.OpenAI) -> None:
    fields = {**GREEDY, "stop": ["e"], "max_tokens": 200}
    plain = client.chat.completions.create(messages=MESSAGES, **fields)
    assert plain.choices[0].finish_reason == "stop"

    with client.chat.completions.stream(messages=MESSAGES, **fields) as stream:
        final = stream.get_final_completion()

    assert final.choices[0].message.content == plain.choices[0].message.content


def test_three_texts_are_streamed_as_they_are_answered(client: openai.OpenAI) -> None:
    plain = client.chat.completions.create(messages=MESSAGES, n=3, **SAMPLED)

    texts, ends = ["", "", ""], []
    for chunk in client.chat.completions.create(messages=MESSAGES, n=3, stream=True, **SAMPLED):
        (choice,) = chunk.choices
        texts[choice.index] += choice.delta.content or ""
        ends += [choice.index] * (choice.finish_reason is not None)

    assert texts == [each.message.content for each in plain.choices]
    assert len(set(texts)) == 3
    assert ends == [0, 1, 2]


@pytest.mark.parametrize("text", RICH)
def test_streamed_text_is_the_plain_text_whatever_it_is_written_in(
    client: openai.OpenAI, text: str
) -> None:
    fields = {**SAMPLED, "logit_bias": spell(text), "max_tokens": 40, "prompt": text}
    plain = client.completions.create(**fields).choices[0].text

    chunks = list(client.completions.create(stream=True, **fields))

    assert "".join(chunk.choices[0].text for chunk in chunks) == plain
    assert not plain.isascii()
    assert len(chunks) > 3


@pytest.mark.parametrize("text", RICH)
def test_streamed_log_probabilities_spell_the_text(client: openai.OpenAI, text: str) -> None:
    fields: dict[str, Any] = {**SAMPLED, "logit_bias": spell(text), "max_tokens": 40}
    plain = client.chat.completions.create(
        messages=MESSAGES, logprobs=True, top_logprobs=2, **fields
    )
    chunks = client.chat.completions.create(
        messages=MESSAGES, logprobs=True, top_logprobs=2, stream=True, **fields
    )

    told = [
        token
        for chunk in chunks
        if (choice := chunk.choices[0]).logprobs
        for token in choice.logprobs.content or []
    ]

    choice = plain.choices[0]
    assert choice.logprobs is not None
    assert choice.logprobs.content is not None
    values = [each.logprob for each in choice.logprobs.content]
    assert [each.logprob for each in told] == pytest.approx(values, abs=1e-4)
    assert [each.token for each in told] == [each.token for each in choice.logprobs.content]
    assert choice.message.content is not None
    spelt = "".join(each.token for each in told)
    assert spelt == choice.message.content
    assert all(len(each.top_logprobs) == 2 for each in told)


def test_stop_ends_the_text_and_is_reported(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(messages=MESSAGES, **SAMPLED).choices[0].message.content
    assert whole is not None
    stop = next(each for each in whole[8:] if each.isascii() and each.isalpha())

    cut = client.chat.completions.create(messages=MESSAGES, stop=["\u0001", stop], **SAMPLED)

    choice = cut.choices[0]
    assert choice.message.content == whole[: whole.index(stop)]
    assert choice.finish_reason == "stop"
    assert choice.model_extra == {"stop_reason": stop}


def test_own_samplers_are_extra_fields(client: openai.OpenAI) -> None:
    greedy = client.chat.completions.create(messages=MESSAGES, **GREEDY)

    other = client.chat.completions.create(
        messages=MESSAGES,
        model=MODEL,
        temperature=1.5,
        max_tokens=16,
        extra_body={"top_k": 1, "tfs": 0.95, "warpers_order": ["top_k", "*"]},
    )

    assert other.choices[0].message.content == greedy.choices[0].message.content


def test_completions_of_a_list_of_prompts_are_those_of_each(client: openai.OpenAI) -> None:
    prompts = [PROMPT, "One day", "The red house"]
    alone = [client.completions.create(prompt=each, **GREEDY).choices[0].text for each in prompts]

    together = client.completions.create(prompt=prompts, **GREEDY)

    assert [each.text for each in together.choices] == alone
    assert [each.index for each in together.choices] == [0, 1, 2]


def test_async_client_is_answered_beside_others(tiny_stack: Stack, client: openai.OpenAI) -> None:
    questions = [f"{PROMPT} {n}" for n in range(8)]

    async def ask() -> tuple[list[str | None], str]:
        base = f"{tiny_stack.url}/v1"
        async with openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0) as other:
            made = [
                other.chat.completions.create(
                    messages=[{"role": "user", "content": each}], **GREEDY
                )
                for each in questions
            ]
            answers = [each.choices[0].message.content for each in await asyncio.gather(*made)]
            stream = await other.chat.completions.create(messages=MESSAGES, stream=True, **GREEDY)
            return answers, "".join([each.choices[0].delta.content or "" async for each in stream])

    answers, streamed = asyncio.run(ask())

    assert answers == [
        client.chat.completions.create(messages=[{"role": "user", "content": each}], **GREEDY)
        .choices[0]
        .message.content
        for each in questions
    ]
    plain = client.chat.completions.create(messages=MESSAGES, **GREEDY)
    assert streamed == plain.choices[0].message.content


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"model": "no-such-model"}, openai.NotFoundError, "unknown_model"),
        ({"temperature": -1}, openai.BadRequestError, "invalid_request"),
        ({"extra_body": {"no_such_field": 1}}, openai.BadRequestError, "invalid_request"),
        ({"tools": [{"type": "function"}]}, openai.BadRequestError, "unsupported_parameter"),
        ({"logit_bias": {"511": 1}}, openai.BadRequestError, "invalid_request"),
        (
            {"messages": [{"role": "user", "content": "cat " * 400}]},
            openai.BadRequestError,
            "prompt_too_long",
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_the_packages_exceptions(
    client: openai.OpenAI,
    fields: dict[str, Any],
    error: type[openai.APIStatusError],
    code: str,
    stream: bool,
) -> None:
    with pytest.raises(error) as caught:
        client.chat.completions.create(
            **{"messages": MESSAGES, "model": MODEL, "max_tokens": 4, **fields}, stream=stream
        )

    assert caught.value.code == code
    assert isinstance(caught.value.body, dict)


def test_client_that_leaves_a_stream_ends_its_job(tiny_stack: Stack, client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        messages=MESSAGES, model=MODEL, max_tokens=200, n=4, stream=True
    )
    next(iter(stream))

    stream.close()

    tiny_stack.until(lambda: tiny_stack.redis().zcard("neodim:leases") == 0, "no lease is left")


@pytest.mark.parametrize("as_ids", [False, True])
def test_loglikelihood_of_a_harness_is_that_of_a_direct_pass(
    tiny_stack: Stack, as_ids: bool
) -> None:
    import torch

    tokenizer = AutoTokenizer.from_pretrained(TINY / MODEL)
    model = AutoModelForCausalLM.from_pretrained(TINY / MODEL, dtype=torch.float32).eval()
    ids = tokenizer.encode(PROMPT)
    body = {"model": MODEL, "prompt": [ids] if as_ids else PROMPT, "echo": True, "logprobs": 1}

    reply = requests.post(
        f"{tiny_stack.url}/v1/completions",
        json={**body, "max_tokens": 1, "temperature": 0, "seed": 1234},
        timeout=60,
    ).json()

    with torch.inference_mode():
        rows = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    expected = [float(rows[n, token]) for n, token in enumerate(ids[1:])]
    told = reply["choices"][0]["logprobs"]
    assert told["token_logprobs"][0] is None
    assert told["token_logprobs"][1:-1] == pytest.approx(expected, abs=1e-3)
    assert "".join(told["tokens"]) == reply["choices"][0]["text"]
    for n, top in enumerate(told["top_logprobs"][1:-1]):
        assert max(top.values()) == pytest.approx(float(rows[n].max()), abs=1e-3)
