"""Explanations are differences of separately computed losses."""

from __future__ import annotations

from typing import Any

import pytest
from reading_jobs import PATHS, ReadingEngine, prompt, read_alone, reading
from tiny_engine import TinyEngine, job, parts

from neodim_sampling.errors import InvalidParams, PromptTooLong
from neodim_sampling.prompt_items import ItemsPrompt, TextControl, TextItem
from neodim_sampling.text.words import spelling_as_written
from workers.contract.reading_job import (
    Explanation,
    ExplanationJob,
    ExplanationResult,
    Granularity,
    Postprocessing,
)
from workers.reading.explanation import shown

pytestmark = pytest.mark.model

TOLERANCE = 1e-4
TEXT = "The old cat sees a red house near the river. One dog"
TARGET = " sees the cat"


def explain(engine: ReadingEngine, asked: ItemsPrompt, **fields: Any) -> ExplanationResult:
    result = engine.do(ExplanationJob(model="m", prompt=asked, target=TARGET, **fields))
    assert isinstance(result, ExplanationResult)
    return result


def losses(
    family: str, ids: list[int], n_target: int, factors: dict[int, float], is_general: bool
) -> list[float]:
    """Negative log-probabilities of the target's tokens, computed apart from everything."""
    engine = TinyEngine(family, is_running=False, is_general=is_general)
    return [-each for each in read_alone(engine, ids, n_target, factors)]


def score_list(explanation: Explanation) -> list[float]:
    return [each.score for item in explanation.items for each in item]


@pytest.mark.parametrize(("family", "is_general"), PATHS)
def test_scores_are_differences_of_losses(family: str, is_general: bool) -> None:
    _, codec = parts(family)
    with reading(family, chunk=7, is_general=is_general) as engine:
        result = explain(engine, prompt(TEXT, [70, 71]), granularity=Granularity.WORD)

    behind = spelling_as_written(codec, TARGET)
    read, spans = codec.encode_with_spans(TEXT)
    ids = [*read, 70, 71, *behind]
    base = losses(family, ids, len(behind), {}, is_general)
    (explanation,) = result.explanations
    assert explanation.target == TARGET
    assert explanation.of_target == ()
    assert result.item_kinds == ("text", "token_ids")
    assert (result.n_prompt, result.n_target) == (len(read) + 2, len(behind))
    assert result.n_variants == 1 + len(TEXT.split()) + 2
    words = [TEXT[each.start : each.start + each.length] for each in explanation.items[0]]
    assert words == TEXT.split()
    first = explanation.items[0][2]
    shared = {
        n: min(stop, first.start + first.length) - max(start, first.start)
        for n, (start, stop) in enumerate(spans)
    }
    factors = {n: 0.1 for n, length in shared.items() if length > 0}
    changed = losses(family, ids, len(behind), factors, is_general)
    assert first.score == pytest.approx(sum(changed) - sum(base), abs=TOLERANCE)
    changed = losses(family, ids, len(behind), {len(read) + 1: 0.1}, is_general)
    assert explanation.items[1][1].score == pytest.approx(sum(changed) - sum(base), abs=TOLERANCE)


def test_controls_of_the_prompt_stay_in_force_and_multiply() -> None:
    control = TextControl(start=4, length=3, factor=0.5)
    asked = prompt(TextItem(text=TEXT, controls=(control,)))
    with reading("gpt2") as engine:
        result = explain(engine, asked, granularity=Granularity.PARAGRAPH, factor=0.2)

    _, codec = parts("gpt2")
    read, spans = codec.encode_with_spans(TEXT)
    behind = spelling_as_written(codec, TARGET)
    ids = [*read, *behind]
    controlled = [n for n, (start, stop) in enumerate(spans) if start < 7 and stop > 4]
    halves = dict.fromkeys(controlled, 0.5)
    all_less = {n: 0.1 if n in halves else 0.2 for n in range(len(read))}
    base = losses("gpt2", ids, len(behind), halves, False)
    changed = losses("gpt2", ids, len(behind), all_less, False)
    assert score_list(result.explanations[0]) == [
        pytest.approx(sum(changed) - sum(base), abs=TOLERANCE)
    ]


def test_each_token_of_the_target_is_explained_with_those_before_it() -> None:
    _, codec = parts("gpt2")
    behind, spans = codec.encode_with_spans(TARGET)
    with reading("gpt2") as engine:
        whole = explain(engine, prompt(TEXT), granularity=Granularity.SENTENCE)
        result = explain(engine, prompt(TEXT), granularity=Granularity.SENTENCE, is_by_token=True)

    assert [each.target for each in result.explanations] == [codec.piece(n) for n in behind]
    assert result.n_variants == whole.n_variants + len(behind) - 1
    assert [len(each.of_target) for each in result.explanations] == list(range(len(behind)))
    for n, score in enumerate(score_list(whole.explanations[0])):
        of_tokens = [score_list(each)[n] for each in result.explanations]
        assert sum(of_tokens) == pytest.approx(score, abs=TOLERANCE)
    last = result.explanations[-1]
    n_prompt = result.n_prompt
    ids = [*codec.encode_bare(TEXT), *behind]
    base = losses("gpt2", ids, len(behind), {}, False)
    for n, each in enumerate(last.of_target):
        start, stop = spans[n]
        text = TARGET[start:stop]
        assert TARGET[each.start : each.start + each.length] == text.lstrip(" ")
        changed = losses("gpt2", ids, len(behind), {n_prompt + n: 0.1}, False)
        assert each.score == pytest.approx(changed[-1] - base[-1], abs=TOLERANCE)


def test_factor_of_one_gives_zeros_and_reads_once() -> None:
    with reading("gpt2") as engine:
        result = explain(engine, prompt(TEXT), factor=1.0, is_by_token=True)

    assert {each for one in result.explanations for each in score_list(one)} == {0.0}
    assert {each.score for one in result.explanations for each in one.of_target} == {0.0}
    assert result.n_variants == 1


@pytest.mark.parametrize("attention", [{"is_log_additive": False}, {"threshold": 0.9}], ids=str)
def test_ways_of_control_change_the_scores(attention: dict[str, Any]) -> None:
    repeated = "cat and cat and dog"
    with reading("gpt2") as engine:
        usual = explain(engine, prompt(repeated), granularity=Granularity.WORD)
        other = explain(engine, prompt(repeated, **attention), granularity=Granularity.WORD)

    pairs = zip(score_list(usual.explanations[0]), score_list(other.explanations[0]), strict=True)
    assert max(abs(one - another) for one, another in pairs) > TOLERANCE


def test_explanation_is_the_same_again_and_beside_others() -> None:
    with reading("llama", slots=4, chunk=9) as engine:
        first = explain(engine, prompt(TEXT), granularity=Granularity.TOKEN)
        strangers = [
            engine.engine.submit(job(seed=n, prompt=TEXT * (1 + n % 2), temperature=1.2))
            for n in range(6)
        ]
        second = explain(engine, prompt(TEXT), granularity=Granularity.TOKEN)
        for each in strangers:
            engine.engine.result(*each)

    assert score_list(second.explanations[0]) == pytest.approx(
        score_list(first.explanations[0]), abs=1e-5
    )


def test_empty_prompt_is_explained_by_nothing() -> None:
    with reading("gpt2") as engine:
        result = explain(engine, prompt(""))

    assert [each.items for each in result.explanations] == [((),)]
    assert (result.n_prompt, result.n_variants) == (1, 1)


def test_prompt_and_target_that_do_not_fit_are_refused() -> None:
    with reading("gpt2", max_length=16) as engine, pytest.raises(PromptTooLong, match=r"^prompt: "):
        explain(engine, prompt([70] * 14))


def test_target_without_a_token_names_its_field() -> None:
    with (
        reading("gpt2") as engine,
        pytest.raises(InvalidParams, match=r"^target: must not be empty"),
    ):
        engine.do(ExplanationJob(model="m", prompt=prompt(TEXT), target=""))


@pytest.mark.parametrize(
    ("postprocessing", "is_normalised", "expected"),
    [
        (Postprocessing.NONE, False, [-2.0, 0.0, 1.0]),
        (Postprocessing.ABSOLUTE, False, [2.0, 0.0, 1.0]),
        (Postprocessing.SQUARE, False, [4.0, 0.0, 1.0]),
        (Postprocessing.NONE, True, [0.0, pytest.approx(2 / 3), 1.0]),
        (Postprocessing.SQUARE, True, [1.0, 0.0, 0.25]),
    ],
)
def test_scores_are_told_as_was_asked(
    postprocessing: Postprocessing, is_normalised: bool, expected: list[float]
) -> None:
    assert shown([-2.0, 0.0, 1.0], postprocessing, is_normalised) == expected


@pytest.mark.parametrize("scores", [[], [0.5], [3.0, 3.0]])
def test_scores_that_are_all_alike_become_zeros(scores: list[float]) -> None:
    assert shown(scores, Postprocessing.NONE, True) == [0.0] * len(scores)
