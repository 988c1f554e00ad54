from __future__ import annotations

import pytest

from api.standard.log_probs import (
    ScoreLine,
    chat_log_probs,
    completion_log_probs,
    scores_of_text,
)
from workers.contract.text_result import Alternative, TokenScore


def scores(*texts):
    """A token for each text: ids 0, 1, 2, ... with log-probabilities -0.0, -1.0, -2.0, ..."""
    return [TokenScore(n, text, -float(n)) for n, text in enumerate(texts)]


def told(line, n_characters):
    return [each.token for each in line.up_to(n_characters)]


def test_tokens_are_told_when_text_that_begins_with_them_is():
    line = ScoreLine()
    line.add(scores("ab", "cd", "ef"))

    assert [told(line, n) for n in (0, 1, 2, 3, 6)] == [[], [0], [], [1], [2]]


def test_a_token_without_a_text_is_told_with_the_one_that_completes_it():
    line = ScoreLine()
    line.add(scores("a", "", "", "\u00e9", "b"))

    assert [told(line, n) for n in (1, 2, 3)] == [[0], [1, 2, 3], [4]]


def test_a_token_that_ends_the_text_without_adding_to_it_is_not_told():
    assert scores_of_text(scores("a", "b", ""), "ab") == scores("a", "b")


def test_a_token_within_which_a_stop_begins_is_told_and_those_behind_are_not():
    assert scores_of_text(scores("a", "b.", "\n", "c"), "ab") == scores("a", "b.")


def test_a_token_at_whose_start_a_stop_begins_is_not_told():
    assert scores_of_text(scores("a", ".", "\n"), "a") == scores("a")


def test_nothing_is_told_of_an_empty_text():
    assert scores_of_text(scores("", "STOP"), "") == []


def test_a_character_that_stays_unfinished_is_told_with_its_tokens():
    assert scores_of_text(scores("a", ""), "a\ufffd") == scores("a", "")


def test_tokens_are_told_as_they_come():
    line = ScoreLine()
    first = told(line, 2)
    line.add(scores("a"))
    second = told(line, 2)
    line.add(scores("x", "b")[1:])

    assert (first, second, told(line, 2)) == ([], [0], [1])


def test_log_probabilities_that_nobody_asked_for_are_null():
    assert chat_log_probs(None) is None
    assert completion_log_probs(None) is None


def test_a_chat_tells_text_bytes_and_alternatives_of_each_token():
    score = TokenScore(7, "\u00e9", -0.5, (Alternative(7, "\u00e9", -0.5), Alternative(8, "x", -2)))

    assert chat_log_probs([score]) == {
        "content": [
            {
                "token": "\u00e9",
                "logprob": -0.5,
                "bytes": [0xC3, 0xA9],
                "top_logprobs": [
                    {"token": "\u00e9", "logprob": -0.5, "bytes": [0xC3, 0xA9]},
                    {"token": "x", "logprob": -2, "bytes": [0x78]},
                ],
            }
        ],
        "refusal": None,
    }


def test_without_alternatives_a_chat_has_an_empty_list_of_them():
    assert chat_log_probs(scores("a"))["content"][0]["top_logprobs"] == []


def test_an_unfinished_character_has_no_bytes():
    score = TokenScore(7, "", -0.5, (Alternative(7, "\ufffd", -0.5),))

    (entry,) = chat_log_probs([score])["content"]

    assert entry["bytes"] is None
    assert entry["top_logprobs"][0]["bytes"] is None


def test_a_completion_tells_where_each_token_begins():
    log_probs = completion_log_probs(scores("ab", "", "c", "d"), offset=10)

    assert log_probs["tokens"] == ["ab", "", "c", "d"]
    assert log_probs["token_logprobs"] == [0.0, -1.0, -2.0, -3.0]
    assert log_probs["text_offset"] == [10, 12, 12, 13]


def test_offsets_count_characters_not_bytes():
    assert completion_log_probs(scores("\U0001f600", "\u4f60", "x"))["text_offset"] == [0, 1, 2]


def test_the_first_token_of_a_text_has_neither_log_probability_nor_alternatives():
    log_probs = completion_log_probs([TokenScore(7, "a", None)])

    assert (log_probs["token_logprobs"], log_probs["top_logprobs"]) == ([None], [None])


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (TokenScore(7, "a", -0.5), {"a": -0.5}),
        (
            TokenScore(7, "a", -3.0, (Alternative(8, "b", -0.1), Alternative(9, "c", -2.0))),
            {"b": -0.1, "c": -2.0, "a": -3.0},
        ),
        # Two tokens spell the same: the likelier one is told.
        (
            TokenScore(9, "b", -2.0, (Alternative(8, "b", -0.1), Alternative(9, "b", -2.0))),
            {"b": -0.1},
        ),
        (TokenScore(7, "a", -0.5, (Alternative(7, "a", -0.5),)), {"a": -0.5}),
    ],
)
def test_alternatives_of_a_completion_are_by_text_with_the_token_itself(score, expected):
    assert completion_log_probs([score])["top_logprobs"] == [expected]
