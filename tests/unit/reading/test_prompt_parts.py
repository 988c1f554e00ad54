"""The parts of a prompt, and which tokens' attention each of them scales."""

from __future__ import annotations

from typing import Any

import pytest

from neodim_sampling.prompt_items import IdsItem, ItemsPrompt, PromptItem, TextItem
from neodim_sampling.text.items import ReadItem
from workers.contract.reading_job import ExplanationJob, Granularity, IdScore, TextScore
from workers.reading.parts import cut_prompt

RECORDED = "### Instruction:\nAnswer the"
RECORDED_SPANS = [(0, 1), (1, 3), (4, 15), (15, 16), (16, 17), (17, 23), (24, 27)]


def job(*items: PromptItem, **fields: Any) -> ExplanationJob:
    return ExplanationJob(model="m", prompt=ItemsPrompt(items=items), target="x", **fields)


def read(first: int, *spans: tuple[int, int]) -> ReadItem:
    return ReadItem(first, tuple(range(len(spans))), spans, {})


def by_letter(first: int, text: str) -> ReadItem:
    return read(first, *((n, n + 1) for n in range(len(text))))


def told(parts: list[Any]) -> list[tuple[int, int]]:
    return [(each.told.start, each.told.length) for each in parts]


def test_token_parts_are_the_tokens_without_spaces_in_front() -> None:
    spans = [(0, 1), (1, 3), (4, 7), (7, 15), (15, 16), (16, 17), (17, 23), (24, 27)]

    parts = cut_prompt(
        job(TextItem(text=RECORDED), granularity=Granularity.TOKEN), [read(0, *spans)]
    )

    assert told(parts) == [
        (0, 1),
        (1, 2),
        (4, 3),
        (7, 8),
        (15, 1),
        (16, 1),
        (17, 6),
        (24, 3),
    ]
    assert [dict(each.factors) for each in parts] == [{n: 0.1} for n in range(8)]


def test_tokens_of_one_character_are_one_part() -> None:
    parts = cut_prompt(
        job(TextItem(text="a\u00e9"), granularity=Granularity.TOKEN),
        [read(2, (0, 1), (1, 2), (1, 2))],
    )

    assert told(parts) == [(0, 1), (1, 1)]
    assert [dict(each.factors) for each in parts] == [{2: 0.1}, {3: 0.1, 4: 0.1}]


def test_word_scales_all_of_its_tokens() -> None:
    parts = cut_prompt(
        job(TextItem(text=RECORDED), granularity=Granularity.WORD), [read(5, *RECORDED_SPANS)]
    )

    assert told(parts) == [(0, 3), (4, 12), (17, 6), (24, 3)]
    assert [sorted(each.factors) for each in parts] == [[5, 6], [7, 8], [10], [11]]


@pytest.mark.parametrize(("is_complete", "factor"), [(False, 0.55), (True, 0.1)])
def test_token_that_a_part_covers_by_half_gets_half_of_it_unless_said_otherwise(
    is_complete: bool, factor: float
) -> None:
    parts = cut_prompt(
        job(
            TextItem(text="ab,cd"),
            granularity=Granularity.CUSTOM,
            delimiter=",",
            is_complete=is_complete,
        ),
        [read(0, (0, 2), (2, 4), (4, 5))],
    )

    assert [dict(each.factors) for each in parts] == [
        {0: pytest.approx(0.1)},
        {1: pytest.approx(factor), 2: pytest.approx(0.1)},
    ]


@pytest.mark.parametrize("granularity", [Granularity.TOKEN, Granularity.PARAGRAPH])
def test_ids_are_parts_by_themselves_whatever_the_granularity(granularity: Granularity) -> None:
    parts = cut_prompt(
        job(TextItem(text="a"), IdsItem(ids=(7, 8)), granularity=granularity, factor=0.0),
        [read(0, (0, 1)), ReadItem(1, (7, 8), (), {})],
    )

    assert [each.item for each in parts] == [0, 1, 1]
    assert [dict(each.factors) for each in parts] == [{0: 0.0}, {1: 0.0}, {2: 0.0}]
    assert [type(each.told) for each in parts] == [TextScore, IdScore, IdScore]


@pytest.mark.parametrize(
    ("text", "n_parts"),
    [
        # 30 letters in 2 words: by token.
        ("a" * 15 + " " + "b" * 14, 30),
        # 90 tokens and 30 words.
        ("ab " * 30, 30),
        # 180 tokens, 90 words and 28 sentences.
        ("a b. " * 28 + "c d" * 3, 29),
        # 1000 words, 300 sentences, 25 paragraphs.
        ("A b. C d. E f.\n\n" * 25, 25),
        # 45 tokens are 15 too many, 15 words are 15 too few: the finer ones.
        ("ab " * 15, 45),
    ],
)
def test_granularity_that_nobody_chose_gives_nearest_to_thirty_parts(
    text: str, n_parts: int
) -> None:
    parts = cut_prompt(job(TextItem(text=text)), [by_letter(0, text)])

    assert len(parts) == n_parts


def test_number_of_parts_is_that_of_the_whole_prompt() -> None:
    text = "abcdefghij klm"
    items = [TextItem(text=text)] * 10

    parts = cut_prompt(job(*items), [by_letter(n * 14, text) for n in range(10)])

    assert len(parts) == 20
    assert parts[-1].item == 9
    assert sorted(parts[-1].factors) == [137, 138, 139]


def test_prompt_without_tokens_has_no_parts() -> None:
    assert cut_prompt(job(TextItem(text="")), [read(0)]) == []
    assert cut_prompt(job(), []) == []
