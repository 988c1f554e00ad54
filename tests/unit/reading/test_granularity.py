"""How texts are cut into parts."""

from __future__ import annotations

import time

import pytest

from workers.contract.reading_job import Granularity
from workers.reading.granularity import text_spans

TEXT = 'Hello you. "Who?" he said!\nOne line\n\n  Next part, 3.5 m. \n \nLast'


def cut(text: str, granularity: Granularity, delimiter: str = "") -> list[str]:
    return [text[start:stop] for start, stop in text_spans(text, granularity, delimiter)]


def test_words_are_what_stands_between_white_space() -> None:
    assert text_spans("### Instruction:\nAnswer  the", Granularity.WORD) == [
        (0, 3),
        (4, 16),
        (17, 23),
        (25, 28),
    ]


def test_sentences_end_with_marks_before_white_space_or_with_their_line() -> None:
    assert cut(TEXT, Granularity.SENTENCE) == [
        "Hello you.",
        '"Who?"',
        "he said!",
        "One line",
        "Next part, 3.5 m.",
        "Last",
    ]


def test_chinese_sentences_need_no_space_between_them() -> None:
    text = "\u4f60\u597d\u3002\u4f60\u662f\u8c01\uff1f\u300d\u597d"

    assert cut(text, Granularity.SENTENCE) == [text[:3], text[3:8], text[8:]]


def test_paragraphs_stand_between_empty_lines() -> None:
    assert cut(TEXT, Granularity.PARAGRAPH) == [
        'Hello you. "Who?" he said!\nOne line',
        "Next part, 3.5 m.",
        "Last",
    ]


@pytest.mark.parametrize(
    ("text", "delimiter", "parts"),
    [
        ("a, b,, c ", ",", ["a", "b", "c "]),
        ("Q: x\n###\nQ: y\n###\n", "###", ["Q: x\n", "\nQ: y\n"]),
        ("a.b", ".", ["a", "b"]),
        ("none here", "|", ["none here"]),
        ("|", "|", []),
    ],
)
def test_custom_parts_stand_between_delimiters(text: str, delimiter: str, parts: list[str]) -> None:
    assert cut(text, Granularity.CUSTOM, delimiter) == parts


@pytest.mark.parametrize("granularity", [g for g in Granularity if g is not Granularity.TOKEN])
@pytest.mark.parametrize("text", ["", "  ", "\n \n", " \t\n\n "])
def test_white_space_has_no_parts(text: str, granularity: Granularity) -> None:
    assert text_spans(text, granularity, ",") == []


@pytest.mark.parametrize("granularity", [g for g in Granularity if g is not Granularity.TOKEN])
@pytest.mark.parametrize("unit", [".", "\n ", "?)", "a ", "\n", ". x", "\u3002"])
def test_long_texts_of_any_kind_are_cut_quickly(unit: str, granularity: Granularity) -> None:
    text = unit * (300_000 // len(unit)) + "x"

    started = time.monotonic()
    text_spans(text, granularity, ",")

    assert time.monotonic() - started < 5
