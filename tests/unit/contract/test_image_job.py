"""Image jobs are valid by construction, and keep what they are through JSON beside text jobs."""

from __future__ import annotations

from typing import Any

import pytest
from picture_files import left_half_mask, stripes

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompts import PreamblePrompt
from workers.contract.image_job import ImageJob, ImageResult, Picture, ResponseFormat
from workers.contract.job_body import decode_job, decode_result, encode, n_expected
from workers.contract.text_job import SEED_LIMIT, TextJob

SOURCE = Picture(field="image", body=stripes())
MASK = Picture(field="mask", body=left_half_mask())
MINIMAL: dict[str, Any] = {
    "model": "m",
    "prompt": "a cat",
    "seed": 1,
    "width": 64,
    "height": 72,
    "steps": 10,
}
FULL = ImageJob(
    **{**MINIMAL, "seed": SEED_LIMIT - 1},
    negative_prompt="a dog",
    n_pictures=3,
    guidance_scale=2.5,
    source=SOURCE,
    mask=MASK,
    strength=0.35,
    response_format=ResponseFormat.B64_JSON,
)


@pytest.mark.parametrize("job", [FULL, ImageJob(**MINIMAL)])
def test_job_is_the_same_after_json(job: ImageJob) -> None:
    assert decode_job(encode(job)) == job


def test_text_jobs_are_told_apart() -> None:
    prompt = PreamblePrompt(preamble="", text="kind: image", max_total_tokens=9)
    job = TextJob(model="m", prompt=prompt, max_new_tokens=4, seed=1, n_sequences=2)

    assert decode_job(encode(job)) == job
    assert n_expected(job) == 8


def test_result_is_the_same_after_json() -> None:
    result = ImageResult(n_pictures=2, prompt="p", width=64, height=72, is_partial=True)

    assert decode_result(encode(result)) == result


def test_steps_are_those_that_are_done() -> None:
    assert n_expected(ImageJob(**MINIMAL, n_pictures=2)) == 20
    assert n_expected(ImageJob(**MINIMAL, n_pictures=2, source=SOURCE, strength=0.55)) == 10


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"n_pictures": 0}, "n"),
        ({"n_pictures": 101}, "n"),
        ({"seed": -1}, "seed"),
        ({"seed": SEED_LIMIT}, "seed"),
        ({"steps": 0}, "steps"),
        ({"steps": 501}, "steps"),
        ({"width": 56}, "width"),
        ({"width": 65}, "width"),
        ({"height": 4104}, "height"),
        ({"guidance_scale": -0.1}, "guidance_scale"),
        ({"guidance_scale": float("nan")}, "guidance_scale"),
        ({"guidance_scale": 1, "negative_prompt": "x"}, "negative_prompt"),
        ({"source": SOURCE, "strength": 0}, "strength"),
        ({"source": SOURCE, "strength": 1.01}, "strength"),
        ({"source": SOURCE, "strength": 0.09}, "strength"),
        ({"mask": MASK}, "mask"),
        ({"source": SOURCE, "mask": Picture(field="mask", body=stripes(kind="JPEG"))}, "mask"),
        ({"source": Picture(field="image", body=stripes((64, 72))), "mask": MASK}, "mask"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_job_that_cannot_be_is_not_made(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParams, match=f"^{named}: "):
        ImageJob(**{**MINIMAL, **fields})


def test_a_picture_too_large_to_decode_is_refused_by_its_first_bytes() -> None:
    bomb = stripes()[:16] + (65_535).to_bytes(4, "big") * 2

    with pytest.raises(InvalidParams, match=r"^file: 65535x65535 are too many; .* 33554432 pixels"):
        Picture(field="file", body=bomb)


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(InvalidParams, match=r"^file: must be a picture: a PNG, JPEG or WebP"):
        Picture(field="file", body=b"GIF89a")
