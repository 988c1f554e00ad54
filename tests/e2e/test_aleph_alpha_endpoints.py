"""Tokens, models and chats of a real model, as the vendor's own client of Aleph Alpha sees them."""

from __future__ import annotations

import asyncio

import pytest
from aleph_alpha_client import (
    AsyncClient,
    ChatRequest,
    Client,
    DetokenizationRequest,
    Message,
    TokenizationRequest,
)
from aleph_alpha_client.chat import ChatStreamChunk, FinishReason, Role
from stack import TINY, Stack
from transformers import AutoTokenizer

pytestmark = pytest.mark.stack

MODEL = "gpt2"
TEXTS = ["The old cat", "Grüße aus Köln!\n\t<|endoftext|>", "  你好 😀  "]
CHAT = ChatRequest(model=MODEL, messages=[Message(Role.User, "Hello")], maximum_tokens=12, top_k=1)


@pytest.fixture
def client(tiny_stack: Stack) -> Client:
    return Client(host=tiny_stack.url, token="any", total_retries=0)


def test_models_and_version_are_told(client: Client) -> None:
    client.validate_version()

    (model,) = client.models()
    assert (model["name"], model["max_context_size"]) == (MODEL, 250)
    assert model["image_support"] is False


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_the_models_own(client: Client, text: str) -> None:
    own = AutoTokenizer.from_pretrained(TINY / MODEL)
    request = TokenizationRequest(text, tokens=True, token_ids=True)

    answer = client.tokenize(request, model=MODEL)

    encoding = client.tokenizer(MODEL).encode(text)
    assert answer.token_ids == encoding.ids == own.encode(text)
    assert answer.tokens == encoding.tokens
    back = client.detokenize(DetokenizationRequest(encoding.ids), model=MODEL)
    assert back.result == client.tokenizer(MODEL).decode(encoding.ids)


def test_a_streamed_chat_adds_up_to_the_plain_one(client: Client, tiny_stack: Stack) -> None:
    async def read() -> list[object]:
        async with AsyncClient(host=tiny_stack.url, token="any", total_retries=0) as streaming:
            return [each async for each in streaming.chat_with_streaming(CHAT, model=MODEL)]

    plain = client.chat(CHAT, model=MODEL)
    *chunks, last = asyncio.run(read())

    assert plain.finish_reason is FinishReason.Length
    assert last is FinishReason.Length
    texts = [each.content for each in chunks if isinstance(each, ChatStreamChunk)]
    assert "".join(texts) == plain.message.content != ""
