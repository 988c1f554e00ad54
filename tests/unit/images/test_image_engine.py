"""The engine with a tiny real model: seeds, progress, cancel, stop, and models that cannot."""

from __future__ import annotations

import dataclasses
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from picture_files import decoded, left_half_mask, stripes

from workers.contract.errors import EngineFailure, EngineStopped, InvalidParams, OutOfMemory
from workers.contract.image_job import ImageJob, Picture
from workers.contract.settings import Settings
from workers.images.engine import Drawing, ImageEngine
from workers.images.loader import load_pipelines
from workers.images.pipelines import Pipelines

pytestmark = pytest.mark.model

JOB = ImageJob(model="m", prompt="a cat", seed=5, width=64, height=72, steps=3)
SOURCE = Picture(field="image", body=stripes((64, 72)))
MASK = Picture(field="mask", body=left_half_mask((64, 72)))


class FakePipeline:
    """A pipeline that draws what it is told to, and takes few arguments."""

    def __init__(self, pixels: Any) -> None:
        self._pixels = pixels

    def __call__(
        self,
        prompt: str,
        num_inference_steps: int,
        generator: object,
        callback_on_step_end: object,
        output_type: str,
    ) -> Any:
        if isinstance(self._pixels, Exception):
            raise self._pixels
        return type("Output", (), {"images": self._pixels[None]})


@pytest.fixture(scope="module")
def pipelines(tiny_image_model: Path) -> Pipelines:
    return load_pipelines(Settings(image_model=str(tiny_image_model), image_model_name="m"))


def fake(pixels: Any) -> ImageEngine:
    return ImageEngine(Pipelines(generate=FakePipeline(pixels), edit=None, inpaint=None))


def drawn(engine: ImageEngine, job: ImageJob) -> tuple[list[bytes], list[int]]:
    """The files of a job, and the progress that was told."""
    steps: list[int] = []
    drawing = Drawing(job, steps.append)
    engine.draw(drawing)
    return drawing.files, steps


def test_all_pipelines_share_one_set_of_weights(pipelines: Pipelines) -> None:
    assert pipelines.edit.unet is pipelines.inpaint.unet is pipelines.generate.unet
    assert pipelines.edit.unet.dtype is torch.float32


def test_pictures_are_those_of_their_seeds_and_steps_are_counted(pipelines: Pipelines) -> None:
    engine = ImageEngine(pipelines)

    together, steps = drawn(engine, dataclasses.replace(JOB, n_pictures=2))
    second, _ = drawn(engine, dataclasses.replace(JOB, seed=6))

    assert together[1] == second[0] != together[0]
    assert decoded(together[0]).size == (64, 72)
    assert sorted(set(steps)) == [1, 2, 3, 4, 5, 6]
    assert steps == sorted(steps)


@pytest.mark.parametrize("mask", [None, MASK])
def test_an_edit_does_the_steps_that_it_said(pipelines: Pipelines, mask: Picture | None) -> None:
    job = dataclasses.replace(JOB, steps=10, source=SOURCE, mask=mask, strength=0.45)

    _, steps = drawn(ImageEngine(pipelines), job)

    assert max(steps) == job.steps_each == 4
    assert len(steps) == 4 + 1


def test_jobs_from_several_threads_do_not_mix(pipelines: Pipelines) -> None:
    engine = ImageEngine(pipelines)
    jobs = [dataclasses.replace(JOB, seed=n, steps=3 + n) for n in range(3)]
    files: dict[int, list[bytes]] = {}

    threads = [
        threading.Thread(target=lambda n=n: files.update({n: drawn(engine, jobs[n])[0]}))
        for n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert files == {n: drawn(engine, jobs[n])[0] for n in range(3)}


def test_a_cancelled_drawing_ends_at_its_next_step(pipelines: Pipelines) -> None:
    steps: list[int] = []

    def report(n_steps: int) -> None:
        steps.append(n_steps)
        if n_steps == 5:
            drawing.cancel()

    drawing = Drawing(dataclasses.replace(JOB, n_pictures=4), report)
    ImageEngine(pipelines).draw(drawing)

    assert max(steps) == 5
    assert len(drawing.files) == 1


def test_a_drawing_cancelled_before_it_begins_draws_nothing(pipelines: Pipelines) -> None:
    drawing = Drawing(JOB, lambda n_steps: None)
    drawing.cancel()

    ImageEngine(pipelines).draw(drawing)

    assert drawing.files == []


def test_a_stopped_engine_ends_what_it_draws(pipelines: Pipelines) -> None:
    engine = ImageEngine(pipelines)
    drawing = Drawing(JOB, lambda n_steps: engine.stop())

    with pytest.raises(EngineStopped):
        engine.draw(drawing)


def test_only_an_engine_that_draws_can_look_stuck(pipelines: Pipelines) -> None:
    engine = ImageEngine(pipelines)
    seen: list[float] = []

    def report(n_steps: int) -> None:
        time.sleep(0.02)
        seen.append(time.monotonic() - engine.turned_at)

    engine.draw(Drawing(JOB, report))
    time.sleep(0.02)

    assert min(seen) >= 0.02
    assert time.monotonic() - engine.turned_at < 0.01
    assert engine.n_turns == 4


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), OutOfMemory),
        (MemoryError(), OutOfMemory),
        (RuntimeError("shapes do not match"), EngineFailure),
    ],
)
def test_a_failing_model_fails_the_job_and_not_the_engine(
    error: Exception, expected: type[Exception]
) -> None:
    engine = fake(error)

    for _ in range(2):
        with pytest.raises(expected):
            drawn(engine, JOB)


def test_pixels_that_are_not_numbers_are_no_picture() -> None:
    with pytest.raises(EngineFailure, match="not numbers"):
        drawn(fake(np.full((72, 64, 3), np.nan, np.float32)), JOB)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"source": SOURCE}, "image"),
        ({"source": SOURCE, "mask": MASK}, "mask"),
        ({"negative_prompt": "x"}, "negative_prompt"),
        ({"guidance_scale": 2.0}, "guidance_scale"),
        ({"width": 128}, "size"),
    ],
)
def test_what_a_model_cannot_do_is_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParams, match=f"^{named}: "):
        drawn(fake(np.zeros((72, 64, 3), np.float32)), dataclasses.replace(JOB, **fields))
