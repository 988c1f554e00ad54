"""Attention controls on pictures, and what their tiles are like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from seeing_engine import N_TILES, SeeingEngine, looking_job, picture
from tiny_engine import Ear

from neodim_sampling.prompt_items import AreaControl, AttentionParams, ImageItem
from workers.contract.text_result import TextResult
from workers.engine.pictures import embedding_of, numbered

pytestmark = pytest.mark.model

WHOLE = AreaControl(left=0.0, top=0.0, width=1.0, height=1.0, factor=0.0)
FIRST_TILE = AreaControl(left=0.0, top=0.0, width=1 / 12, height=1 / 12, factor=0.0)


@pytest.fixture(params=[False, True], ids=["fused", "general"])
def seeing(tiny_vision_model: Path, request: pytest.FixtureRequest) -> Iterator[SeeingEngine]:
    engine = SeeingEngine(tiny_vision_model, is_general=request.param, chunk=50)
    yield engine
    engine.stop()


def square(*controls: AreaControl) -> ImageItem:
    return picture("red", "blue", size=(48, 48), controls=controls)


def log_probs(seeing: SeeingEngine, *controls: AreaControl) -> list[float | None]:
    job = looking_job("I see ", square(*controls), " there.", max_new_tokens=1, log_probs=5)
    result: TextResult = seeing.result(*seeing.submit(job))
    return [each.log_prob for each in (result.sequences[0].scores or ())[0].top]


def test_control_of_a_picture_changes_what_comes_behind(seeing: SeeingEngine) -> None:
    plain = log_probs(seeing)

    assert log_probs(seeing, WHOLE) != pytest.approx(plain, abs=1e-3)
    assert log_probs(seeing) == pytest.approx(plain, abs=1e-5)


@torch.inference_mode()
def test_likeness_is_that_of_what_tiles_show(seeing: SeeingEngine) -> None:
    params = AttentionParams(threshold=1.0)
    controlled = looking_job("I see ", square(FIRST_TILE), attention=params, max_new_tokens=1)
    sequence = seeing.preparer.prepare(controlled, {}, Ear()).sequences[0]
    ids, control = sequence.row.input_ids, sequence.control
    assert control is not None

    control.learn(
        numbered(ids, sequence.pictures), embedding_of(seeing.model.embed, sequence.pictures)
    )

    # All tiles have one id; read by that, all would be as the first one.
    factors = control.factors_of(0, ids)
    assert factors[6] == 0
    assert factors[:6] + factors[7:] == [1.0] * (5 + N_TILES)


@torch.inference_mode()
def test_embeddings_of_a_prompt_are_the_pictures_rows_in_their_places(
    seeing: SeeingEngine,
) -> None:
    sequence = seeing.preparer.prepare(looking_job("ab", square(), "c"), {}, Ear()).sequences[0]
    ids, pictures = sequence.row.input_ids, sequence.pictures

    found = embedding_of(seeing.model.embed, pictures)(numbered(ids, pictures))

    assert torch.equal(found[2 : 2 + N_TILES], pictures[0].picture.rows)
    assert torch.equal(found[:2], seeing.model.embed(ids[:2]))
    assert torch.equal(found[-1:], seeing.model.embed(ids[-1:]))
