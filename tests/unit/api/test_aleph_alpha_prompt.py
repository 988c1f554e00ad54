from __future__ import annotations

import pytest
from aleph_alpha_client import ControlTokenOverlap, Image, Prompt, Text, Tokens
from aleph_alpha_client import TextControl as SentTextControl
from aleph_alpha_client import TokenControl as SentTokenControl
from aleph_alpha_client.prompt import Cropping, ImageControl
from marshmallow import ValidationError
from picture_files import as_base64, stripes

from api.aleph_alpha.prompt import PromptItems
from neodim_sampling.prompt_items import (
    AreaControl,
    Crop,
    IdsItem,
    ImageItem,
    TextControl,
    TextItem,
    TokenControl,
)

PICTURE = stripes((48, 32))
RECT = {"left": 0.0, "top": 0.0, "width": 0.5, "height": 0.5}


def read(prompt):
    return PromptItems(required=True).deserialize(prompt)


def text(data="Hello", **fields):
    return [{"type": "text", "data": data, **fields}]


def ids(data=(1, 2, 3), **fields):
    return [{"type": "token_ids", "data": list(data), **fields}]


def picture(data=None, **fields):
    return [{"type": "image", "data": as_base64(PICTURE) if data is None else data, **fields}]


def test_a_string_is_one_text():
    assert read("Hello") == (TextItem(text="Hello"),)


@pytest.mark.parametrize("controls", [{}, {"controls": []}, {"controls": None}])
def test_items_need_no_controls(controls):
    items = read([*text(**controls), *ids(**controls), *picture(**controls)])

    assert items == (
        TextItem(text="Hello"),
        IdsItem(ids=(1, 2, 3)),
        ImageItem(picture=PICTURE),
    )


def test_a_prompt_may_have_no_item():
    assert read([]) == ()


def test_what_the_vendors_client_sends_is_read_with_all_its_controls():
    sent = Prompt(
        [
            Text(
                "Hello",
                [
                    SentTextControl(0, 5, 0.5),
                    SentTextControl(1, 2, 2.0, ControlTokenOverlap.Complete),
                ],
            ),
            Tokens([1, 2, 3], [SentTokenControl(pos=1, factor=0.5)]),
            Image(
                as_base64(PICTURE),
                Cropping(upper_left_x=10, upper_left_y=2, size=30),
                [
                    ImageControl(0.0, 0.1, 0.5, 0.6, 0.0),
                    ImageControl(0.0, 0.0, 1.0, 1.0, 2.0, ControlTokenOverlap.Complete),
                ],
            ),
        ]
    )

    items = read(sent.to_json())

    assert items == (
        TextItem(
            text="Hello",
            controls=(
                TextControl(start=0, length=5, factor=0.5),
                TextControl(start=1, length=2, factor=2.0, is_complete=True),
            ),
        ),
        IdsItem(ids=(1, 2, 3), controls=(TokenControl(index=1, factor=0.5),)),
        ImageItem(
            picture=PICTURE,
            crop=Crop(x=10, y=2, size=30),
            controls=(
                AreaControl(left=0.0, top=0.1, width=0.5, height=0.6, factor=0.0),
                AreaControl(left=0.0, top=0.0, width=1.0, height=1.0, factor=2.0, is_complete=True),
            ),
        ),
    )


def test_bare_texts_and_ids_of_the_vendors_client_are_read():
    assert read(Prompt(["Hello", [1, 2]]).to_json()) == (
        TextItem(text="Hello"),
        IdsItem(ids=(1, 2)),
    )


def test_a_prompt_that_the_server_told_can_be_sent_again():
    told = picture(x=None, y=None, size=None) + text(add_prefix_space=True)

    assert read(told) == (ImageItem(picture=PICTURE), TextItem(text="Hello"))


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        (7, "must be a string or a list of items, not 7"),
        ({"type": "text"}, "must be a string or a list of items, not an object"),
        (["Hello"], 'item 0 must be an object with type and data, not "Hello"'),
        ([*text(), {"data": "x"}], 'item 1: type must be one of "text", "token_ids", "image"'),
        ([{"type": "text"}], "item 0: data: is required"),
        (text(7), "item 0: data: must be a string, not 7"),
        (text(controls={}), "item 0: controls: must be a list of at most 10000, not an object"),
        (text(controls=[1]), "item 0: controls: entry 0 must be an object, not 1"),
        (ids([1, "2"]), 'item 0: data: must be an integer, not "2"'),
        (ids([-1]), "item 0: data: must be at least 0, not -1"),
        ([{"type": "token_ids", "data": "1"}], "item 0: data: must be a list of token ids"),
        (picture("no base64!"), "item 0: data: must be a picture in base64"),
        (picture(as_base64(b"GIF89a")), "item 0: data: must be a picture: a PNG, JPEG or WebP"),
        (picture(x=1), "item 0: x: is needed together with y and size"),
        (picture(x=20, y=0, size=32), "item 0: size: the square from 20, 0 on, 32 wide, is not"),
        (picture(x=0, y=0, size=0), "item 0: size: must be at least 1, not 0"),
    ],
)
def test_an_error_names_the_item_and_what_is_wrong_with_it(prompt, problem):
    with pytest.raises(ValidationError) as found:
        read(prompt)

    assert found.value.messages[0].startswith(problem)


@pytest.mark.parametrize(
    ("prompt", "control", "problem"),
    [
        (text, {"start": 0, "length": 5}, "controls: entry 0: factor: is required"),
        (text, {"start": 0, "length": 0, "factor": 1}, "a control from character 0 on, 0 long"),
        (text, {"start": 3, "length": 3, "factor": 1}, "a control from character 3 on, 3 long"),
        (text, {"start": 0, "length": 1, "factor": -1}, "the factor of a control must be at least"),
        (
            text,
            {"start": 0, "length": 1, "factor": 1, "token_overlap": "half"},
            'controls: entry 0: token_overlap: must be one of "partial", "complete", not "half"',
        ),
        (ids, {"index": 3, "factor": 1}, "a control has the index 3, and there are 3 ids"),
        (picture, {"factor": 1}, "controls: entry 0: rect: is required"),
        (picture, {"rect": 1, "factor": 1}, "controls: entry 0: rect: must be an object, not 1"),
        (
            picture,
            {"rect": {**RECT, "left": "0"}, "factor": 1},
            'controls: entry 0: rect: left: must be a number, not "0"',
        ),
        (
            picture,
            {"rect": {**RECT, "left": 0.6}, "factor": 1},
            "the rectangle of a control lies between 0 and 1 and is not empty",
        ),
    ],
)
def test_an_error_of_a_control_says_what_is_wrong_with_it(prompt, control, problem):
    with pytest.raises(ValidationError) as found:
        read(prompt(controls=[control]))

    assert found.value.messages[0].startswith(f"item 0: {problem}")


def test_crop_may_be_of_a_picture_that_is_to_be_looked_at_sideways():
    (item,) = read(picture(x=0, y=16, size=32))

    # 48 x 32 pixels, or 32 x 48 when they are turned, as only a worker can see.
    assert item.crop == Crop(x=0, y=16, size=32)


def test_crop_of_no_such_picture_is_refused():
    with pytest.raises(ValidationError, match="is not within 48 x 32 pixels"):
        read(picture(x=17, y=17, size=32))
