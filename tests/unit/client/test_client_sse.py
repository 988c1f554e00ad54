"""Server-sent events from bytes cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neodim_client.sse import EventReader, ServerSentEvent

STREAM = (
    '\ufeff:\n\nid: 1-0\nevent: delta\ndata: {"text": "a\u2028\u0085\x1c\u00e9\U0001f600"}\n\n'
    ": ping\n\nid: 2-0\r\nevent: state\r\ndata: one\r\ndata:two\r\n\r\n"
    "data: \r\rid\ndata\n\nretry: 5\nid: 3\0\nevent: lost\n\ndata: x: y\n\n"
).encode()
EVENTS = [
    ServerSentEvent("1-0", "delta", '{"text": "a\u2028\u0085\x1c\u00e9\U0001f600"}'),
    ServerSentEvent("2-0", "state", "one\ntwo"),
    ServerSentEvent("2-0", "message", ""),
    ServerSentEvent("", "message", ""),
    ServerSentEvent("", "message", "x: y"),
]


def read(*pieces: bytes) -> list[ServerSentEvent]:
    reader = EventReader()
    return [event for piece in pieces for event in reader.feed(piece)]


def test_stream_is_read_as_its_standard_has_it() -> None:
    assert read(STREAM) == EVENTS


def test_stream_is_read_byte_by_byte() -> None:
    assert read(*(STREAM[n : n + 1] for n in range(len(STREAM)))) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_stream_is_read_the_same_wherever_it_is_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]

    assert read(*(STREAM[a:b] for a, b in pairwise(places))) == EVENTS


@pytest.mark.parametrize("rest", [b"data: x", b"data: x\n", b"id: 9\ndata: x\r"])
def test_event_that_was_cut_off_is_none(rest: bytes) -> None:
    assert read(b"data: a\n\n", rest) == [ServerSentEvent("", "message", "a")]
