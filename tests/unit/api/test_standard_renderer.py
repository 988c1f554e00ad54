from __future__ import annotations

import pytest
from standard_answers import record, result, scored, sequence

from api.standard.renderer import FINGERPRINT, render_chat, render_completion, render_completions
from workers.contract.text_result import FinishReason, TokenScore


def test_a_chat_has_the_standards_fields_and_those_of_openai():
    assert render_chat(record(result(sequence("Hi")))) == {
        "code": 0,
        "message": "success",
        "id": "chatcmpl-7",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "tiny",
        "system_fingerprint": FINGERPRINT,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi"},
                "logprobs": None,
                "finish_reason": "length",
                "stop_reason": None,
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }


def test_a_completion_has_the_same_with_its_text():
    answer = render_completion(record(result(sequence("Hi"))))

    assert (answer["id"], answer["object"]) == ("cmpl-7", "text_completion")
    assert answer["choices"] == [
        {"index": 0, "text": "Hi", "logprobs": None, "finish_reason": "length", "stop_reason": None}
    ]


@pytest.mark.parametrize(
    ("reason", "stop", "expected"),
    [
        (FinishReason.LENGTH, "", ("length", None)),
        (FinishReason.STOP, "END", ("stop", "END")),
        (FinishReason.END_OF_TEXT, "", ("stop", 9)),
        (FinishReason.CANCELLED, "", ("cancelled", None)),
    ],
)
def test_a_choice_says_what_ended_it(reason, stop, expected):
    made = result(sequence("Hi", tokens=(1, 9), reason=reason, stop=stop))

    (choice,) = render_chat(record(made))["choices"]

    assert (choice["finish_reason"], choice["stop_reason"]) == expected


def test_each_text_is_a_choice_in_its_order():
    made = result(*map(sequence, "abc"))

    choices = render_chat(record(made))["choices"]

    assert [(each["index"], each["message"]["content"]) for each in choices] == [
        (0, "a"),
        (1, "b"),
        (2, "c"),
    ]


def test_candidates_that_were_not_kept_count_in_the_usage():
    answer = render_completion(record(result(sequence("a"), n_made=40)))

    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 40, "total_tokens": 43}


def test_prompts_are_answered_in_their_order_with_all_their_tokens():
    first = record(result(sequence("a"), sequence("b"), n_prompt=3), "1")
    second = record(result(sequence("c"), sequence("d"), n_prompt=5), "2")

    answer = render_completions([first, second])

    assert answer["id"] == "cmpl-1"
    assert [(each["index"], each["text"]) for each in answer["choices"]] == [
        (0, "a"),
        (1, "b"),
        (2, "c"),
        (3, "d"),
    ]
    assert answer["usage"] == {"prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16}


ECHO = (TokenScore(1, "", None), TokenScore(2, "Good ", -1.0), TokenScore(3, "day", -2.0))


def test_an_echo_comes_before_the_text_with_its_log_probabilities():
    made = result(sequence(" sir", tokens=(0,), scores=scored(" sir")), echo=ECHO)

    (choice,) = render_completion(record(made))["choices"]

    assert choice["text"] == "Good day sir"
    assert choice["logprobs"]["tokens"] == ["", "Good ", "day", " sir"]
    assert choice["logprobs"]["token_logprobs"] == [None, -1.0, -2.0, 0.0]
    assert choice["logprobs"]["text_offset"] == [0, 0, 5, 8]


def test_an_echo_needs_no_log_probabilities():
    (choice,) = render_completion(record(result(sequence(" sir"), echo=ECHO)))["choices"]

    assert (choice["text"], choice["logprobs"]) == ("Good day sir", None)


def test_log_probabilities_are_those_of_the_text_without_its_stop():
    made = result(sequence("ab", stop="STOP", scores=scored("a", "b", "ST", "OP")))

    (choice,) = render_chat(record(made))["choices"]

    assert [each["token"] for each in choice["logprobs"]["content"]] == ["a", "b"]


def test_log_probabilities_of_no_token_are_an_empty_list():
    made = result(sequence("", tokens=(9,), reason=FinishReason.END_OF_TEXT, scores=scored("")))

    (choice,) = render_chat(record(made))["choices"]

    assert choice["logprobs"] == {"content": [], "refusal": None}
