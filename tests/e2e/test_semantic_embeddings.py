"""Meanings that a real model finds, as the vendor's own client of Aleph Alpha's API sees them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from aleph_alpha_client import (
    BatchSemanticEmbeddingRequest,
    Client,
    EmbeddingRequest,
    Prompt,
    SemanticEmbeddingRequest,
    SemanticRepresentation,
    Text,
)
from stack import Stack

pytestmark = pytest.mark.stack

MODEL = "gpt2"
TEXTS = ["The old cat", "A red house near the river"]


@pytest.fixture
def client(tiny_stack: Stack) -> Client:
    return Client(host=tiny_stack.url, token="any", total_retries=0)


def meaning(
    client: Client, text: str, representation: SemanticRepresentation, *, normalize: bool = False
) -> tuple[Sequence[float], int]:
    """A text's vector and the tokens that were read for it."""
    request = SemanticEmbeddingRequest(
        Prompt.from_text(text), representation=representation, normalize=normalize
    )
    answer = client.semantic_embed(request, model=MODEL)
    return answer.embedding, answer.num_tokens_prompt_total


def states(client: Client, *texts: str) -> tuple[Sequence[float], int]:
    """The weighted mean of the last layer's states, and the tokens."""
    prompt = Prompt([Text.from_text(each) for each in texts])
    request = EmbeddingRequest(prompt, layers=[-1], pooling=["weighted_mean"])
    answer = client.embed(request, model=MODEL)
    assert answer.embeddings is not None
    (vector,) = answer.embeddings.values()
    return vector, answer.num_tokens_prompt_total


@pytest.mark.parametrize(
    ("representation", "texts"),
    [
        (SemanticRepresentation.Symmetric, [TEXTS[0]]),
        (SemanticRepresentation.Query, ["[", TEXTS[0], "]"]),
        (SemanticRepresentation.Document, ["{", TEXTS[0], "}"]),
    ],
)
def test_a_meaning_is_the_weighted_mean_of_the_last_states(
    client: Client, representation: SemanticRepresentation, texts: list[str]
) -> None:
    vector, n_tokens = meaning(client, TEXTS[0], representation)

    expected, n_expected = states(client, *texts)
    assert vector == pytest.approx(expected, abs=1e-5)
    assert n_tokens == n_expected


def test_meanings_of_a_batch_are_those_of_its_texts(client: Client) -> None:
    query = SemanticRepresentation.Query
    prompts = [Prompt.from_text(each) for each in TEXTS]

    answer = client.batch_semantic_embed(BatchSemanticEmbeddingRequest(prompts, query), MODEL)

    found = [meaning(client, each, query) for each in TEXTS]
    for vector, (expected, _) in zip(answer.embeddings, found, strict=True):
        assert vector == pytest.approx(expected, abs=1e-5)
    assert answer.num_tokens_prompt_total == sum(n for _, n in found)


def test_a_meaning_may_have_length_one(client: Client) -> None:
    vector, _ = meaning(client, TEXTS[1], SemanticRepresentation.Symmetric, normalize=True)

    assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)


def test_a_query_is_not_read_as_a_document(client: Client) -> None:
    query, _ = meaning(client, TEXTS[1], SemanticRepresentation.Query)
    document, _ = meaning(client, TEXTS[1], SemanticRepresentation.Document)

    assert query != pytest.approx(document, abs=1e-3)
