"""Prompts and requests in JSON, held against the vendor's own package."""

from __future__ import annotations

import base64
import json
from dataclasses import fields
from typing import Any

import aleph_alpha_client as vendor
import pytest

from neodim_client import (
    CompletionRequest,
    ControlTokenOverlap,
    Cropping,
    CustomGranularity,
    EvaluationRequest,
    ExplanationPostprocessing,
    ExplanationRequest,
    Image,
    ImageControl,
    Prompt,
    PromptGranularity,
    TargetGranularity,
    Text,
    TextControl,
    TokenControl,
    Tokens,
)

PIXELS = b"not looked at"
RICH = Prompt(
    (
        Text("Hello", (TextControl(0, 5, 0.5, ControlTokenOverlap.COMPLETE),)),
        Text(" \U0001f600", (TextControl(1, 1, 2.0), TextControl(1, 1, 0.0))),
        Tokens((1, 2, 3), (TokenControl(pos=1, factor=0.5),)),
        Image.from_bytes(
            PIXELS,
            Cropping(300, 0, 600),
            (ImageControl(0.0, 0.25, 0.5, 0.5, 0.0, ControlTokenOverlap.PARTIAL),),
        ),
        Image.from_bytes(PIXELS, controls=(ImageControl(0, 0, 1, 1, 3),)),
    )
)


def vendor_prompt() -> Any:
    """The same as the vendor's package writes it."""
    overlap = vendor.ControlTokenOverlap
    picture = base64.b64encode(PIXELS).decode()
    half = vendor.ImageControl(0.0, 0.25, 0.5, 0.5, 0.0, overlap.Partial)
    items = [
        vendor.Text("Hello", [vendor.TextControl(0, 5, 0.5, overlap.Complete)]),
        vendor.Text(" \U0001f600", [vendor.TextControl(1, 1, 2.0), vendor.TextControl(1, 1, 0.0)]),
        vendor.Tokens([1, 2, 3], [vendor.TokenControl(pos=1, factor=0.5)]),
        vendor.Image(picture, vendor.Image.from_bytes.__globals__["Cropping"](300, 0, 600), [half]),
        vendor.Image(picture, None, [vendor.ImageControl(0, 0, 1, 1, 3)]),
    ]
    return vendor.Prompt(items)


def test_prompt_survives_json_with_its_controls() -> None:
    sent = json.loads(json.dumps(RICH.to_json()))

    assert Prompt.from_json(sent) == RICH


def test_prompt_is_written_as_the_vendors_package_writes_it() -> None:
    assert json.loads(json.dumps(RICH.to_json())) == list(vendor_prompt().to_json())


def test_prompt_of_an_answer_is_read_with_what_servers_add() -> None:
    told = [
        {"type": "text", "data": "a", "add_prefix_space": True, "controls": []},
        {"type": "image", "data": "eA==", "x": None, "y": None, "size": None},
        {"type": "token_ids", "data": [1], "controls": None},
    ]

    assert Prompt.from_json(told).items == (Text("a"), Image("eA=="), Tokens((1,)))
    assert Prompt.from_json("a") == Prompt.from_text("a")


def test_item_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="type: a prompt's items are text, token_ids, image"):
        Prompt.from_json([{"type": "sound", "data": ""}])


def test_image_of_a_file_is_its_content(tmp_path: Any) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(PIXELS)

    assert Image.from_file(path) == Image.from_bytes(PIXELS)


def test_completion_request_has_the_fields_and_defaults_of_the_vendors() -> None:
    prompt = Prompt.from_text("hi")
    # Newer than the field list that is followed, and nothing that this server does.
    theirs = {**vendor.CompletionRequest(vendor.Prompt("hi")).to_json(), "maximum_tokens": 64}
    names = {each.name for each in fields(vendor.CompletionRequest)} - {"steering_concepts"}

    assert json.loads(json.dumps(CompletionRequest(prompt).to_json())) == theirs
    assert {each.name for each in fields(CompletionRequest)} == names


def test_completion_request_leaves_out_nothing_that_was_set() -> None:
    ours = CompletionRequest(
        RICH,
        maximum_tokens=None,
        logit_bias={5: 1.5},
        log_probs=0,
        stop_sequences=["x"],
        completion_bias_inclusion=[],
        control_log_additive=False,
        contextual_control_threshold=0.0,
    )
    theirs = vendor.CompletionRequest(
        vendor_prompt(),
        maximum_tokens=None,
        logit_bias={5: 1.5},
        log_probs=0,
        stop_sequences=["x"],
        completion_bias_inclusion=[],
        control_log_additive=False,
        contextual_control_threshold=0.0,
    )

    assert json.dumps(ours.to_json(), sort_keys=True) == json.dumps(
        theirs.to_json(), sort_keys=True
    )
    assert "maximum_tokens" not in ours.to_json()


@pytest.mark.parametrize(
    "name", ["Evaluation", "Explanation", "Embedding", "Tokenization", "Detokenization"]
)
def test_other_requests_have_the_fields_of_the_vendors(name: str) -> None:
    import neodim_client as ours

    theirs = {each.name for each in fields(getattr(vendor, f"{name}Request"))}

    assert {each.name for each in fields(getattr(ours, f"{name}Request"))} == theirs


def test_evaluation_request_is_written_without_nulls() -> None:
    request = EvaluationRequest(Prompt.from_text("a"), "b")

    assert request.to_json() == {
        "prompt": [{"type": "text", "data": "a", "controls": []}],
        "completion_expected": "b",
        "control_log_additive": True,
    }


@pytest.mark.parametrize(
    ("granularity", "theirs"),
    [
        (PromptGranularity.WORD, {"type": "word"}),
        (CustomGranularity("\n\n"), {"type": "custom", "delimiter": "\n\n"}),
    ],
)
def test_explanation_request_is_written_as_its_endpoint_wants_it(
    granularity: Any, theirs: dict[str, str]
) -> None:
    request = ExplanationRequest(
        Prompt.from_text("a"),
        "b",
        control_factor=0.0,
        control_token_overlap=ControlTokenOverlap.COMPLETE,
        prompt_granularity=granularity,
        target_granularity=TargetGranularity.TOKEN,
        postprocessing=ExplanationPostprocessing.SQUARE,
    )

    sent = json.loads(json.dumps(request.to_json()))

    assert sent == {
        "prompt": [{"type": "text", "data": "a", "controls": []}],
        "target": "b",
        "control_factor": 0.0,
        "control_token_overlap": "complete",
        "prompt_granularity": theirs,
        "target_granularity": "token",
        "postprocessing": "square",
    }


@pytest.mark.parametrize("make", [CompletionRequest, lambda text: EvaluationRequest(text, "x")])
def test_text_in_a_prompts_place_is_refused_with_what_makes_one_of_it(make: Any) -> None:
    with pytest.raises(TypeError, match=r"^prompt: must be a Prompt, such as Prompt.from_text"):
        make("Hi there").to_json()
