from __future__ import annotations

import io

import pytest
from flask import Request
from gunicorn.http.errors import InvalidChunkSize, NoMoreData
from werkzeug.test import EnvironBuilder

from api.json_body import read_json
from api.rejections import MalformedBody


class BrokenInput:
    def __init__(self, error):
        self.error = error

    def read(self, size):
        raise self.error


def request_with(body, length=None):
    environ = EnvironBuilder(method="POST").get_environ()
    environ["wsgi.input"] = body
    if length is not None:
        environ["CONTENT_LENGTH"] = str(length)
    return Request(environ)


@pytest.mark.parametrize("length", [None, 5])
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "the body did not go on for 30 seconds"),
        (NoMoreData(), "the body broke off before its end"),
        (ConnectionResetError(), "the body broke off before its end"),
        (InvalidChunkSize(b"zz"), "the body is not framed as HTTP has it: "),
    ],
)
def test_a_body_that_stops_coming_is_malformed_and_says_how(error, reason, length):
    request = request_with(BrokenInput(error), length)

    with pytest.raises(MalformedBody) as caught:
        read_json(request, needs_media_type=False)

    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize("length", [3, 5000])
def test_a_body_shorter_than_its_length_is_malformed(length):
    request = request_with(io.BytesIO(b"{}"), length)

    with pytest.raises(MalformedBody, match=f"the body ended after 2 of {length} bytes"):
        read_json(request, needs_media_type=False)


@pytest.mark.parametrize("length", [None, 2])
def test_a_whole_body_is_read(length):
    request = request_with(io.BytesIO(b"{}"), length)

    assert read_json(request, needs_media_type=False) == {}
