"""Embeddings are the states that transformers tells, pooled."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from reading_jobs import PATHS, SENTENCE, ReadingEngine, prompt, reading
from tiny_engine import job, parts
from torch import Tensor

from neodim_sampling.errors import InvalidParams, PromptTooLong
from neodim_sampling.prompt_items import IdsItem, ItemsPrompt, TextControl, TextItem, TokenControl
from workers.contract.errors import EngineFailure
from workers.contract.reading_job import Embedding, EmbeddingJob, EmbeddingResult, Pooling
from workers.engine.text_model import Run

pytestmark = pytest.mark.model

TOLERANCE = 1e-5
"""Of a layer's largest number: a direct pass in float32 is as far from one in float64."""


def embed(engine: ReadingEngine, *prompts: ItemsPrompt, **fields: Any) -> EmbeddingResult:
    wanted = {"layers": (0, 1, 2), "pooling": tuple(Pooling), **fields}
    result = engine.do(EmbeddingJob(model="m", prompts=prompts, **wanted))
    assert isinstance(result, EmbeddingResult)
    return result


@torch.inference_mode()
def direct(family: str, ids: list[int]) -> list[Tensor]:
    """[T, H] of each layer."""
    model, _ = parts(family)
    reply = model(torch.tensor([ids]), output_hidden_states=True)
    return [each[0] for each in reply.hidden_states]


def pooled(states: Tensor, pooling: Pooling) -> Tensor:
    places = torch.arange(1, len(states) + 1)[:, None]
    if pooling is Pooling.MEAN:
        return states.mean(0)
    if pooling is Pooling.WEIGHTED_MEAN:
        return (states * places).sum(0) / places.sum()
    if pooling is Pooling.MAX:
        return states.max(0).values
    if pooling is Pooling.LAST_TOKEN:
        return states[-1]
    low, high = states.min(0).values, states.max(0).values
    return torch.where(-low > high, low, high)


def vectors(embedding: Embedding) -> dict[tuple[int, Pooling], Tensor]:
    return {(layer, pooling): torch.tensor(each) for layer, pooling, each in embedding.vectors}


@pytest.mark.parametrize("chunk", [1, 5, 64])
@pytest.mark.parametrize(("family", "is_general"), PATHS)
def test_vectors_are_pooled_states_of_transformers(
    family: str, is_general: bool, chunk: int
) -> None:
    _, codec = parts(family)
    with reading(family, chunk=chunk, is_general=is_general) as engine:
        result = embed(engine, prompt(SENTENCE), prompt([70, 71]), prompt([72]))

    texts = [codec.encode_bare(SENTENCE), [70, 71], [72]]
    for ids, embedding in zip(texts, result.embeddings, strict=True):
        found = vectors(embedding)
        assert embedding.n_tokens == len(ids)
        assert len(found) == 3 * len(Pooling)
        for layer, states in enumerate(direct(family, ids)):
            for pooling in Pooling:
                difference = found[layer, pooling] - pooled(states, pooling)
                assert float(difference.abs().max() / states.abs().max()) < TOLERANCE


def test_embeddings_beside_growing_texts_are_the_same() -> None:
    with reading("llama", chunk=6) as engine:
        alone = embed(engine, prompt(SENTENCE))
        made = engine.engine.generate(seed=3)
        strangers = [engine.engine.submit(job(seed=3)) for _ in range(3)]
        beside = embed(engine, prompt(SENTENCE))
        results = [engine.engine.result(*each) for each in strangers]

    one, other = vectors(alone.embeddings[0]), vectors(beside.embeddings[0])
    for key, vector in one.items():
        assert float((vector - other[key]).abs().max() / vector.abs().max()) < TOLERANCE
    assert {each.sequences[0].tokens for each in results} == {made.sequences[0].tokens}


def test_negative_layers_count_from_the_last_and_none_is_told_twice() -> None:
    with reading("gpt2") as engine:
        result = embed(engine, prompt(SENTENCE), layers=(-1, 2, -3), pooling=(Pooling.MAX,) * 2)

    assert [(layer, pooling) for layer, pooling, _ in result.embeddings[0].vectors] == [
        (2, Pooling.MAX),
        (0, Pooling.MAX),
    ]


@pytest.mark.parametrize("layer", [3, -4])
def test_layer_that_there_is_not_is_refused(layer: int) -> None:
    message = f"^layers: must be from -3 to 2 with this model, not {layer}$"
    with reading("gpt2") as engine, pytest.raises(InvalidParams, match=message):
        embed(engine, prompt(SENTENCE), layers=(0, layer))


def test_normalised_vectors_have_length_one_and_the_same_direction() -> None:
    with reading("gpt2") as engine:
        plain = embed(engine, prompt(SENTENCE))
        unit = embed(engine, prompt(SENTENCE), is_normalised=True)

    one, other = vectors(plain.embeddings[0]), vectors(unit.embeddings[0])
    for key, vector in one.items():
        assert float(other[key].norm()) == pytest.approx(1, abs=TOLERANCE)
        assert float((vector / vector.norm() - other[key]).abs().max()) < TOLERANCE


def test_tokens_are_told_as_each_is_spelt_by_itself() -> None:
    _, codec = parts("gpt2")
    ids = codec.encode_bare(" ab cat")
    with reading("gpt2") as engine:
        told = embed(engine, prompt(" ab cat"), prompt(""), tells_tokens=True)
        quiet = embed(engine, prompt(" ab cat"))

    assert told.embeddings[0].tokens == tuple(map(codec.alone, ids))
    assert "".join(told.embeddings[0].tokens or ()) == " ab cat"
    assert (told.embeddings[1].n_tokens, told.embeddings[1].tokens) == (1, ())
    assert quiet.embeddings[0].tokens is None


def test_mean_weighs_tokens_by_their_controls() -> None:
    controls = (TokenControl(index=0, factor=0.0), TokenControl(index=2, factor=3.0))
    asked = prompt(IdsItem(ids=(70, 71, 72), controls=controls))
    with reading("gpt2") as engine:
        controlled = vectors(embed(engine, asked).embeddings[0])
        plain = vectors(embed(engine, prompt([70, 71, 72])).embeddings[0])

    states = direct("gpt2", [70, 71, 72])[0]
    expected = (states[1] + 3 * states[2]) / 4
    # Of the input embeddings, which attention has not touched yet, only the mean's weights change.
    assert float((controlled[0, Pooling.MEAN] - expected).abs().max()) < TOLERANCE
    for pooling in set(Pooling) - {Pooling.MEAN}:
        assert torch.equal(controlled[0, pooling], plain[0, pooling])
        assert not torch.allclose(controlled[2, pooling], plain[2, pooling], atol=TOLERANCE)


def test_mean_of_tokens_that_all_have_no_attention_is_the_plain_one() -> None:
    control = TextControl(start=0, length=len(SENTENCE), factor=0.0, is_complete=True)
    with reading("gpt2") as engine:
        asked = prompt(TextItem(text=SENTENCE, controls=(control,)))
        result = embed(engine, asked, layers=(0,), pooling=(Pooling.MEAN,))

    states = direct("gpt2", parts("gpt2")[1].encode_bare(SENTENCE))[0]
    found = vectors(result.embeddings[0])[0, Pooling.MEAN]
    assert float((found - states.mean(0)).abs().max()) < TOLERANCE


def test_prompt_that_does_not_fit_is_refused() -> None:
    with (
        reading("gpt2", max_length=16) as engine,
        pytest.raises(PromptTooLong, match=r"^prompt: 17 input tokens do not fit in the 16 tokens"),
    ):
        embed(engine, prompt([70] * 16), prompt([70] * 17))


def test_states_that_are_no_numbers_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    with reading("gpt2") as engine:
        model = engine.engine.model
        healthy = model.read

        def read(runs: list[Run]) -> Any:
            outcome = healthy(runs)
            for states in outcome.states:
                for each in states.values():
                    each.fill_(torch.nan)
            return outcome

        monkeypatch.setattr(model, "read", read)
        with pytest.raises(EngineFailure, match="states are not numbers"):
            embed(engine, prompt(SENTENCE))


@pytest.mark.parametrize(("family", "is_general"), [("llama", False), ("llama", True)])
def test_runs_that_ask_for_no_layers_get_none_but_the_last(family: str, is_general: bool) -> None:
    with reading(family, is_general=is_general) as engine:
        outcome = engine.engine.model.read(
            [Run(0, 0, [70, 71], layers=(1,)), Run(1, 0, [72, 73, 74])]
        )

    assert [sorted(each) for each in outcome.states] == [[1, 2], [2]]
    assert [tuple(each.shape) for each in outcome.hidden] == [
        (2, outcome.hidden[0].shape[1]),
        (3, outcome.hidden[0].shape[1]),
    ]
    assert torch.equal(outcome.states[1][2], outcome.hidden[1])
