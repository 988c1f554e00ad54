"""A service whose text model reads pictures, as its users start it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from picture_files import as_base64, stripes
from stack import Stack, running

pytestmark = pytest.mark.stack

N_TILES = 144
TEXT = {"type": "text", "data": "I see "}
PICTURE = {"type": "image", "data": as_base64(stripes((80, 60)))}
LEFT_HALF = {"rect": {"left": 0.0, "top": 0.0, "width": 0.5, "height": 1.0}, "factor": 0.0}


@pytest.fixture(scope="module")
def stack(tiny_vision_model: Path) -> Iterator[Stack]:
    with running("--model", str(tiny_vision_model), "--slots", "2") as stack:
        yield stack


def post(stack: Stack, path: str, *items: dict[str, Any], **fields: Any) -> requests.Response:
    body = {"model": "tiny-eyes", "prompt": list(items), **fields}
    return requests.post(f"{stack.url}/{path}", json=body, timeout=120)


def complete(stack: Stack, *items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    options = {"maximum_tokens": 4, "log_probs": 0, **fields}
    reply = post(stack, "complete", *items, **options)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def test_text_is_made_behind_a_picture(stack: Stack) -> None:
    answer = complete(stack, TEXT, PICTURE, tokens=True)

    assert answer["num_tokens_prompt_total"] == len("I see ") + N_TILES
    assert len(answer["completions"][0]["completion_tokens"]) == answer["num_tokens_generated"]


def test_model_says_that_it_reads_pictures(stack: Stack) -> None:
    (model,) = requests.get(f"{stack.url}/models_available", timeout=30).json()

    assert (model["name"], model["image_support"]) == ("tiny-eyes", True)


def test_echo_shows_a_picture_as_nothing(stack: Stack) -> None:
    behind = {"type": "text", "data": " it"}

    answer = complete(stack, TEXT, PICTURE, behind, maximum_tokens=0, echo=True, tokens=True)

    made = answer["completions"][0]
    assert made["completion"] == "I see  it"
    assert made["completion_tokens"] == [*"I see  it"]
    assert [len(each) for each in made["log_probs"]] == [0, *[1] * 8]


def test_control_and_crop_of_a_picture_change_what_is_likely(stack: Stack) -> None:
    plain, controlled, cropped = (
        complete(stack, TEXT, {**PICTURE, **each})["completions"][0]["log_probs"][0]
        for each in ({}, {"controls": [LEFT_HALF]}, {"x": 0, "y": 0, "size": 20})
    )

    assert len({json.dumps(each) for each in (plain, controlled, cropped)}) == 3


def test_tiles_of_a_picture_are_explained_by_their_rectangles(stack: Stack) -> None:
    reply = post(stack, "explain", TEXT, PICTURE, target="it", prompt_granularity="token")

    assert reply.status_code == 200, reply.text
    of_picture = reply.json()["explanations"][0]["items"][1]
    assert (of_picture["type"], len(of_picture["scores"])) == ("image", N_TILES)
    # The square in the middle of 80 x 60 pixels begins an eighth from the left.
    assert of_picture["scores"][0]["rect"] == {
        "left": 0.125,
        "top": 0.0,
        "width": pytest.approx(0.75 / 12),
        "height": pytest.approx(1 / 12),
    }


@pytest.mark.parametrize(
    "change", [{"data": as_base64(stripes()[:99])}, {"x": 70, "y": 0, "size": 20}]
)
def test_bad_picture_is_the_requests_fault(stack: Stack, change: dict[str, Any]) -> None:
    reply = post(stack, "complete", {**PICTURE, **change}, maximum_tokens=1)

    assert (reply.status_code, reply.json()["code"]) == (400, "INVALID_REQUEST")
    assert reply.json()["error"].startswith("prompt")


@pytest.mark.parametrize("stream", [False, True])
def test_model_of_text_alone_has_no_such_capability(tiny_stack: Stack, stream: bool) -> None:
    options = {"model": "gpt2", "maximum_tokens": 1, "stream": stream}

    reply = post(tiny_stack, "complete", TEXT, PICTURE, **options)

    assert (reply.status_code, reply.json()["code"]) == (400, "MISSING_CAPABILITY")
