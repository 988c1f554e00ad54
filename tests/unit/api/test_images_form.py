"""Forms with files become what a JSON object would be."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from flask import Request
from werkzeug.test import EnvironBuilder

from api.images.form import MAX_PARTS, read_raw_form
from api.images.schema import ImageEditSchema
from api.rejections import BodyTooLarge, MalformedBody, WrongMediaType

SCHEMA = ImageEditSchema()


def request_with(body: bytes, content_type: str) -> Request:
    request = Request(EnvironBuilder(method="POST", data=body).get_environ())
    request.environ["CONTENT_TYPE"] = content_type
    return request


def read(parts: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reads a form; a part that is a tuple is a file's name and content."""
    files = [(name, part if isinstance(part, tuple) else (None, part)) for name, part in parts]
    form = requests.Request("POST", "http://x", files=files).prepare()
    assert isinstance(form.body, bytes)
    request = request_with(form.body, form.headers["Content-Type"])
    raw, fields = read_raw_form(request, SCHEMA)
    assert raw == form.body
    return fields


def test_numbers_texts_and_files_are_told_apart_by_the_fields() -> None:
    fields = read(
        [
            ("image", ("a.png", b"\x89PNG\xff\x00")),
            ("prompt", "7"),
            ("n", "2"),
            ("seed", "-1"),
            ("strength", ".5"),
            ("guidance_scale", "1e1"),
            ("steps", "many"),
            ("unknown", "3"),
        ]
    )

    assert fields == {
        "image": b"\x89PNG\xff\x00",
        "prompt": "7",
        "n": 2,
        "seed": -1,
        "strength": 0.5,
        "guidance_scale": 10.0,
        "steps": "many",
        "unknown": "3",
    }


def test_a_text_may_come_as_a_file_and_a_picture_as_text() -> None:
    fields = read([("prompt", ("p.txt", "Grüße".encode())), ("mask", "aGk=")])

    assert fields == {"prompt": "Grüße", "mask": "aGk="}


def test_a_text_may_have_the_sign_for_what_is_unknown() -> None:
    assert read([("prompt", "\ufffd")]) == {"prompt": "\ufffd"}


def test_a_picture_in_a_list_is_the_picture() -> None:
    assert read([("image[]", ("a.png", b"\x89PNG"))]) == {"image": b"\x89PNG"}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([("n", "1"), ("n", "2")], "n: is there more than once"),
        ([("image", "1"), ("image", ("a", b"2"))], "image: is there more than once"),
        ([("image[]", ("a", b"1")), ("image[]", ("a", b"2"))], "image: is there more than once"),
        ([("prompt", ("a", b"\xff"))], "prompt: is not text in UTF-8"),
        ([("prompt", (None, b"\xff"))], "prompt: is not text in UTF-8"),
        ([(f"n{k}", "1") for k in range(MAX_PARTS + 1)], "the form has more than 64 parts"),
    ],
    ids=["twice", "text and file", "a list", "no text", "no text either", "too many"],
)
def test_a_form_that_cannot_be_is_refused(parts: list[tuple[str, Any]], message: str) -> None:
    with pytest.raises(MalformedBody, match=f"^{message}"):
        read(parts)


@pytest.mark.parametrize("body", [b"", b"hello", b"--x\r\n", b'--x\r\nname="n"\r\n\r\n1'])
def test_a_body_that_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedBody):
        read_raw_form(request_with(body, "multipart/form-data; boundary=x"), SCHEMA)


@pytest.mark.parametrize(
    "content_type", ["", "application/json", "multipart/form-data", "multipart/mixed; boundary=x"]
)
def test_another_media_type_is_refused(content_type: str) -> None:
    with pytest.raises(WrongMediaType, match="multipart/form-data"):
        read_raw_form(request_with(b"--x--", content_type), SCHEMA)


def test_a_body_beyond_the_limit_is_refused() -> None:
    request = request_with(b"x" * 100, "multipart/form-data; boundary=x")
    request.max_content_length = 99

    with pytest.raises(BodyTooLarge):
        read_raw_form(request, SCHEMA)
