"""Reading jobs whose prompts have pictures in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from reading_jobs import ReadingEngine, prompt
from seeing_engine import N_TILES, SeeingEngine, expected_log_probs, looking_job, picture
from tiny_engine import Ear

from neodim_sampling.prompt_items import AreaControl, ImageItem, ItemsPrompt
from workers.contract.reading_job import (
    AreaScore,
    EmbeddingJob,
    EmbeddingResult,
    EvaluationJob,
    EvaluationResult,
    ExplanationJob,
    ExplanationResult,
    Granularity,
    Pooling,
)

pytestmark = pytest.mark.model

TARGET = "it"
TILE = AreaControl(left=0.5, top=0.0, width=1 / 12, height=1 / 12, factor=0.1)


@pytest.fixture(scope="module", params=[False, True], ids=["fused", "general"])
def engine(tiny_vision_model: Path, request: pytest.FixtureRequest) -> Iterator[ReadingEngine]:
    seeing = SeeingEngine(tiny_vision_model, is_general=request.param, chunk=90)
    yield ReadingEngine(seeing)
    seeing.stop()


def square(*controls: AreaControl) -> ImageItem:
    return picture("red", "blue", size=(48, 48), controls=controls)


def evaluate(engine: ReadingEngine, asked: ItemsPrompt) -> EvaluationResult:
    result = engine.do(EvaluationJob(model="m", prompt=asked, expected=TARGET))
    assert isinstance(result, EvaluationResult)
    return result


def test_evaluation_behind_a_picture_is_that_of_the_whole_model(
    engine: ReadingEngine, tiny_vision_model: Path
) -> None:
    result = evaluate(engine, prompt("I see ", square()))

    both = engine.engine.preparer.prepare(looking_job("I see ", square(), TARGET), {}, Ear())
    expected = expected_log_probs(tiny_vision_model, both)
    ids = both.fitted.input_ids
    of_target = [float(expected[n - 1, ids[n]]) for n in (-2 + len(ids), -1 + len(ids))]
    assert result.log_prob == pytest.approx(sum(of_target), abs=1e-4)
    assert result.n_prompt == 6 + N_TILES


def test_each_tile_has_its_own_score(engine: ReadingEngine) -> None:
    job = ExplanationJob(
        model="m",
        prompt=prompt("I see ", square()),
        target=TARGET,
        granularity=Granularity.TOKEN,
    )

    result = engine.do(job)

    assert isinstance(result, ExplanationResult)
    assert result.item_kinds == ("text", "image")
    _, tiles = result.explanations[0].items
    assert len(tiles) == N_TILES
    seventh = tiles[6]
    assert isinstance(seventh, AreaScore)
    assert (seventh.left, seventh.top) == pytest.approx((0.5, 0.0))
    assert (seventh.width, seventh.height) == pytest.approx((1 / 12, 1 / 12))
    plain = evaluate(engine, prompt("I see ", square())).log_prob
    without = evaluate(engine, prompt("I see ", square(TILE))).log_prob
    assert seventh.score == pytest.approx(plain - without, abs=1e-4)
    assert seventh.score != pytest.approx(0.0, abs=1e-5)


@torch.inference_mode()
def test_input_embeddings_of_a_prompt_are_its_pictures_rows(engine: ReadingEngine) -> None:
    job = EmbeddingJob(
        model="m", prompts=(prompt("ab", square()),), layers=(0,), pooling=(Pooling.MEAN,)
    )

    result = engine.do(job)

    assert isinstance(result, EmbeddingResult)
    (_, _, vector), *_ = result.embeddings[0].vectors
    prepared = engine.engine.preparer.prepare(looking_job("ab", square()), {}, Ear()).sequences[0]
    words = engine.engine.model.embed(prepared.row.input_ids[:2])
    expected = torch.cat([words, prepared.pictures[0].picture.rows]).mean(0)
    assert vector == pytest.approx(expected.tolist(), abs=1e-5)
    assert result.embeddings[0].n_tokens == 2 + N_TILES


@pytest.mark.parametrize(
    ("granularity", "n_side"),
    [(Granularity.WORD, 6), (Granularity.SENTENCE, 3), (Granularity.PARAGRAPH, 1)],
)
def test_coarser_parts_of_a_picture_are_blocks_of_tiles(
    engine: ReadingEngine, granularity: Granularity, n_side: int
) -> None:
    job = ExplanationJob(model="m", prompt=prompt(square()), target=TARGET, granularity=granularity)

    result = engine.do(job)

    assert isinstance(result, ExplanationResult)
    (blocks,) = result.explanations[0].items
    places = [(n % n_side / n_side, n // n_side / n_side) for n in range(n_side**2)]
    assert [(each.left, each.top) for each in blocks if isinstance(each, AreaScore)] == [
        pytest.approx(each) for each in places
    ]
    size = 1 / n_side
    last = blocks[-1]
    assert isinstance(last, AreaScore)
    assert (last.width, last.height) == pytest.approx((size, size))

    def loss(factor: float) -> float:
        control = AreaControl(left=1 - size, top=1 - size, width=size, height=size, factor=factor)
        return -evaluate(engine, prompt(square(control))).log_prob

    assert last.score == pytest.approx(loss(0.1) - loss(1.0), abs=1e-4)
