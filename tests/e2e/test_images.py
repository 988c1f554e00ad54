"""Pictures from the whole service, with a tiny image model beside a tiny text model."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from picture_files import decoded, left_half_mask, stripes
from stack import TINY, Stack, running

pytestmark = pytest.mark.stack

REQUEST: dict[str, Any] = {"prompt": "a cat", "size": "64x64", "steps": 3, "seed": 7, "n": 2}


@pytest.fixture(scope="module")
def stack(tiny_image_model: Path) -> Iterator[Stack]:
    flags = ["--model", str(TINY / "gpt2"), "--max-length", "250", "--slots", "2"]
    with running(*flags, "--image-model", str(tiny_image_model)) as stack:
        yield stack


def draw(stack: Stack, **fields: Any) -> requests.Response:
    url = f"{stack.url}/v1/images/generations"
    return requests.post(url, json={**REQUEST, **fields}, timeout=120)


def test_pictures_are_drawn_beside_text(stack: Stack) -> None:
    linked = draw(stack).json()["data"]
    inline = draw(stack, response_format="b64_json", model="tiny-pictures").json()["data"]
    text = stack.generate(prompt="a cat", generated_tokens_count=2, max_total_tokens=50)

    files = [requests.get(each["url"], timeout=30).content for each in linked]

    assert files == [base64.b64decode(each["b64_json"]) for each in inline]
    assert [decoded(file).size for file in files] == [(64, 64)] * 2
    assert text["generated_tokens_count"] == 2


def test_a_form_with_a_mask_edits_a_picture(stack: Stack) -> None:
    files = {"image": ("a.png", stripes()), "mask": ("m.png", left_half_mask())}
    form = {name: str(value) for name, value in REQUEST.items()}

    reply = requests.post(f"{stack.url}/v1/images/edits", data=form, files=files, timeout=120)

    assert reply.status_code == 200, reply.text
    assert len(reply.json()["data"]) == 2


def test_pictures_of_a_worker_that_was_killed_are_drawn_by_the_next(stack: Stack) -> None:
    body = {"protocol": "image_generation", "request": {**REQUEST, "steps": 300}}
    job_id = requests.post(f"{stack.url}/v1/jobs", json=body, timeout=30).json()["id"]
    stack.until(lambda: stack.job(job_id)["progress"]["steps_done"] > 3, "it is being drawn")

    os.kill(next(iter(stack.processes("workers.images.celery_app"))), signal.SIGKILL)
    ended = stack.ended(job_id)

    assert (ended["state"], ended["attempt"]) == ("succeeded", 2)
    assert len(ended["result"]["data"]) == 2
