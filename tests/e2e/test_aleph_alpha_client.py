"""Completions as the vendor's own client of Aleph Alpha's API sees them, unmodified."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import Any

import pytest
from aleph_alpha_client import AsyncClient, Client, CompletionRequest, Prompt, Text, Tokens
from aleph_alpha_client.completion import CompletionResponse, CompletionSummary, StreamChunk
from stack import TINY, Stack
from transformers import AutoTokenizer

pytestmark = pytest.mark.stack

MODEL = "gpt2"
PROMPT = Prompt.from_text("The old cat sees a red house")
FIELDS = ("completion", "raw_completion", "completion_tokens")
UMLAUTS = "äöü 你好 \U0001f468\u200d\U0001f469"


@pytest.fixture
def client(tiny_stack: Stack) -> Client:
    return Client(host=tiny_stack.url, token="any", total_retries=0)


def close(scores: Mapping[str, float | None]) -> Any:
    """Scores of another run: their last bits differ with what was computed beside or before."""
    return pytest.approx(dict(scores), abs=1e-4)


def ask(client: Client, prompt: Prompt = PROMPT, **fields: Any) -> CompletionResponse:
    request = CompletionRequest(prompt=prompt, **{"maximum_tokens": 12, **fields})
    return client.complete(request, model=MODEL)


def stream(stack: Stack, **fields: Any) -> list[Any]:
    request = CompletionRequest(prompt=PROMPT, **{"maximum_tokens": 12, **fields})

    async def read() -> list[Any]:
        async with AsyncClient(host=stack.url, token="any", total_retries=0) as client:
            return [each async for each in client.complete_with_streaming(request, model=MODEL)]

    return asyncio.run(read())


def spell(text: str) -> dict[int, float]:
    """Biases that make the tokens of a text come, so that a random model speaks of it."""
    tokenizer = AutoTokenizer.from_pretrained(TINY / MODEL)
    return dict.fromkeys(tokenizer.encode(text), 9.0)


def test_tokens_and_log_probabilities_are_those_of_the_text(client: Client) -> None:
    answer = ask(client, tokens=True, log_probs=2, echo=True)

    (found,) = answer.completions
    assert "".join(found.completion_tokens) == found.raw_completion
    assert found.completion.startswith("The old cat sees a red house")
    assert len(found.log_probs) == len(found.completion_tokens)
    assert found.log_probs[0] == {}
    for spelt, told in zip(found.completion_tokens[1:], found.log_probs[1:], strict=True):
        # Pieces of characters are spelt alike, and share an entry.
        assert 1 <= len(told) <= 3
        assert told[spelt] <= 0
    n_prompt = answer.num_tokens_prompt_total
    assert len(found.completion_tokens) == n_prompt + answer.num_tokens_generated


def test_an_echo_of_an_empty_prompt_is_empty(client: Client) -> None:
    answer = ask(client, Prompt.from_text(""), maximum_tokens=0, echo=True, tokens=True)

    assert (answer.completions[0].completion, answer.num_tokens_prompt_total) == ("", 1)
    assert answer.completions[0].completion_tokens == []


def test_texts_and_ids_are_read_one_after_the_other(client: Client) -> None:
    tokenizer = AutoTokenizer.from_pretrained(TINY / MODEL)
    ids = tokenizer.encode(" cat sees")
    mixed = Prompt([Text.from_text("The old"), Tokens.from_token_ids(ids)])

    answer = ask(client, mixed, maximum_tokens=0, echo=True)

    assert answer.completions[0].completion == "The old cat sees"


def test_whole_tokens_go_with_a_stop_sequence(client: Client) -> None:
    (plain,) = ask(client, tokens=True).completions
    whole = "".join(plain.completion_tokens)
    place = len(plain.completion_tokens[0]) + len(plain.completion_tokens[1]) - 1

    (found,) = ask(client, tokens=True, stop_sequences=[whole[place : place + 4]]).completions

    assert found.finish_reason == "stop_sequence_reached"
    assert whole.startswith(found.completion)
    assert found.completion_tokens == plain.completion_tokens[: len(found.completion_tokens)]
    assert len(found.completion) <= place


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tokens": True, "log_probs": 3, "echo": True},
        {"tokens": True, "log_probs": 0, "logit_bias": spell(UMLAUTS), "maximum_tokens": 25},
        {"raw_completion": True, "stop_sequences": ["e"], "maximum_tokens": 60},
    ],
)
def test_a_stream_adds_up_to_the_plain_answer(
    client: Client, tiny_stack: Stack, fields: dict[str, Any]
) -> None:
    (plain,) = ask(client, **fields).completions

    items = stream(tiny_stack, **fields)

    chunks = [each for each in items if isinstance(each, StreamChunk)]
    for name in FIELDS:
        parts = [getattr(each, name) for each in chunks]
        wanted = getattr(plain, name)
        assert (None if wanted is None else reduce(add, parts, type(wanted)())) == wanted
    told = [scores for each in chunks for scores in each.log_probs or ()]
    assert told == [close(scores) for scores in plain.log_probs or ()]
    assert items[-2].finish_reason == plain.finish_reason


def test_the_best_of_several_candidates_is_the_likeliest(client: Client) -> None:
    answer = ask(client, temperature=1.0, best_of=6, n=2, log_probs=0, minimum_tokens=12)

    means = [
        math.fsum(next(iter(each.values())) for each in found.log_probs) / len(found.log_probs)
        for found in answer.completions
    ]
    assert means == sorted(means, reverse=True)
    assert answer.num_tokens_generated == 6 * 12
    assert answer.num_tokens_prompt_total % 6 == 0


def test_more_completions_than_a_worker_has_rows_are_made(client: Client) -> None:
    answer = ask(client, n=40, maximum_tokens=2)

    assert len({each.completion for each in answer.completions}) == 1
    assert (len(answer.completions), answer.num_tokens_generated) == (40, 80)


def test_what_a_worker_refuses_is_a_value_error(client: Client) -> None:
    with pytest.raises(ValueError, match="maximum_tokens"):
        ask(client, maximum_tokens=100_000)
    with pytest.raises(ValueError, match="token ids are from 0 to"):
        ask(client, Prompt.from_tokens([10**6]))
    with pytest.raises(ValueError, match="MISSING_CAPABILITY"):
        ask(client, steering_concepts=["x"])


def test_the_summary_of_a_stream_has_the_totals(tiny_stack: Stack) -> None:
    last = stream(tiny_stack, n=3)[-1]

    assert isinstance(last, CompletionSummary)
    assert last.num_tokens_generated == 36


def test_a_stream_goes_on_over_the_death_of_its_worker(tiny_stack: Stack, client: Client) -> None:
    fields: dict[str, Any] = {
        "maximum_tokens": 200,
        "n": 2,
        "echo": True,
        "log_probs": 0,
        "tokens": True,
    }
    plain = ask(client, **fields)
    request = CompletionRequest(prompt=PROMPT, **fields)

    async def read() -> list[Any]:
        items: list[Any] = []
        async with AsyncClient(host=tiny_stack.url, token="any", total_retries=0) as other:
            async for each in other.complete_with_streaming(request, model=MODEL):
                items.append(each)
                if len(items) == 6:
                    await asyncio.to_thread(tiny_stack.kill_worker)
        return items

    items = asyncio.run(read())

    for index, expected in enumerate(plain.completions):
        chunks = [each for each in items if isinstance(each, StreamChunk) and each.index == index]
        assert reduce(add, (each.completion_tokens for each in chunks)) == (
            expected.completion_tokens
        )
        assert "".join(each.completion for each in chunks) == expected.completion
    assert isinstance(items[-1], CompletionSummary)
