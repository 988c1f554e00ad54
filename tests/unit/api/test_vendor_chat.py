"""Chats are read here by the code of the vendor's own client."""

from __future__ import annotations

import pytest
from aleph_alpha_client.chat import (
    ChatStreamChunk,
    FinishReason,
    Role,
    Usage,
    stream_chat_item_from_json,
)
from standard_answers import data, record, result, scored, sequence

from api.errors import problem_of
from api.standard.vendor_chat import VendorChatWriter, is_vendors
from workers.contract.errors import EngineStopped
from workers.contract.job_record import JobEvent

SDK = "Aleph-Alpha-Python-Client-11.5.1"


def writer(*, n_texts=1, tells_scores=False, repeats_usage=False):
    return VendorChatWriter(
        record(), n_texts=n_texts, tells_scores=tells_scores, repeats_usage=repeats_usage
    )


def delta(text, scores=()):
    return JobEvent(id="1-0", kind="delta", text=text, scores=scores)


def read(frames):
    """What the client makes of frames, but for the last, which says that it is over."""
    return [stream_chat_item_from_json(each) for each in data(frames) if each != "[DONE]"]


@pytest.mark.parametrize(
    ("body", "user_agent", "expected"),
    [
        ({}, SDK, True),
        ({}, "aleph-alpha-rust-client-1.0", True),
        ({"maximum_tokens": 5}, "", True),
        ({"steering_concepts": []}, "curl/8.0", True),
        ({"maximum_tokens": None, "max_tokens": 5}, "OpenAI/Python 2.0", False),
        ({}, "", False),
    ],
)
def test_the_vendors_chats_are_told_by_client_or_by_field(body, user_agent, expected):
    assert is_vendors(body, user_agent) is expected


def test_the_first_chunk_has_the_role_and_an_empty_content():
    (chunk,) = read(writer().begin())

    assert chunk == ChatStreamChunk(content="", role=Role.Assistant, tool_calls=None)


def test_a_text_is_content_alone():
    (chunk,) = read(writer().delta("7", delta("Hi")))

    assert chunk == ChatStreamChunk(content="Hi", role=None, tool_calls=None)


def test_every_chunk_says_that_it_has_no_usage():
    made = writer()

    frames = [
        *made.begin(),
        *made.delta("7", delta("Hi")),
        *made.end([record(result(sequence("Hi")))]),
    ]

    *chunks, done = data(frames)
    assert [each["usage"] for each in chunks] == [None] * 3
    assert done == "[DONE]"


def test_the_reason_is_seen():
    assert read(writer().end([record(result(sequence("Hi")))])) == [FinishReason.Length]


def test_the_usage_comes_alone_where_it_is_asked_for():
    items = read(writer(repeats_usage=True).end([record(result(sequence("Hi")))]))

    assert items == [
        FinishReason.Length,
        Usage(completion_tokens=2, prompt_tokens=3, total_tokens=5),
    ]


def test_log_probabilities_come_with_their_text():
    (chunk,) = data(writer(tells_scores=True).delta("7", delta("Hi", scored("Hi"))))

    assert [each["token"] for each in chunk["choices"][0]["logprobs"]["content"]] == ["Hi"]


def test_silence_is_filled_with_what_the_client_skips():
    assert writer().keep_alive.strip() == b""


def test_a_failure_breaks_the_answer_off():
    with pytest.raises(ConnectionResetError):
        writer().failure(problem_of(EngineStopped("it stops")))
