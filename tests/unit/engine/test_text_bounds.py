"""Texts that are held to options, kept from texts, or ended where nothing may come."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from standard_jobs import plain_job
from tiny_engine import TinyEngine, running

from neodim_sampling.errors import NoTokenLeft
from neodim_sampling.parameters import (
    ConstraintParams,
    StopParams,
    WarperParams,
)
from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.text.words import spelling_as_written
from workers.contract.errors import EngineFailure
from workers.contract.text_job import TextJob
from workers.contract.text_result import FinishReason, SequenceResult, TextResult

pytestmark = pytest.mark.model

END = FinishReason.END_OF_TEXT


@pytest.fixture(params=["gpt2", "llama"])
def engine(request: pytest.FixtureRequest) -> Iterator[TinyEngine]:
    with running(request.param, max_length=120) as engine:
        yield engine


@pytest.fixture
def gpt2() -> Iterator[TinyEngine]:
    with running("gpt2", max_length=120) as engine:
        yield engine


def bound_job(warpers: WarperParams | None = None, **limits: Any) -> TextJob:
    """A job of 30 tokens, greedy unless told otherwise, with such constraints."""
    fields = {"can_stop_early": True, "can_be_empty": True, "ends_where_stuck": True, **limits}
    return replace(
        plain_job(max_tokens=30),
        warpers=warpers or WarperParams(top_k=1),
        constraints=ConstraintParams(**fields),
    )


DRAWN = WarperParams(temperature=1.5)
WARPERS = {
    "greedy": WarperParams(top_k=1),
    "drawn": DRAWN,
    "two best": WarperParams(temperature=1.5, top_k=2),
    "nucleus": WarperParams(top_p=0.3),
    "contrastive": WarperParams(top_k=3, penalty_alpha=0.6),
}


def run(engine: TinyEngine, job: TextJob) -> TextResult:
    return engine.result(*engine.submit(job))


def only(result: TextResult) -> SequenceResult:
    (sequence,) = result.sequences
    return sequence


@pytest.mark.parametrize("warpers", WARPERS.values(), ids=WARPERS)
@pytest.mark.parametrize("inclusions", [(" old house", " river"), (" cat", " cat sees")])
def test_text_is_one_of_its_options_and_then_ends(
    engine: TinyEngine, warpers: WarperParams, inclusions: tuple[str, ...]
) -> None:
    sequence = only(run(engine, bound_job(warpers, inclusions=inclusions)))

    assert (sequence.text in inclusions, sequence.finish_reason) == (True, END)


def test_options_follow_each_other_until_the_text_is_long_enough(engine: TinyEngine) -> None:
    sequence = only(run(engine, bound_job(DRAWN, inclusions=(" river",), min_new_tokens=4)))

    n = sequence.text.count(" river")
    assert sequence.text == " river" * n
    assert n > 1
    assert sequence.finish_reason is END


def test_only_the_first_token_is_bound_where_that_is_asked_for(engine: TinyEngine) -> None:
    free = only(run(engine, bound_job(can_stop_early=False)))
    limits = {"inclusions": (" river",), "is_inclusion_first_only": True, "can_stop_early": False}

    bound = only(run(engine, bound_job(**limits)))

    first = spelling_as_written(engine.codec, " river")[0]
    assert (bound.tokens[0], len(bound.tokens)) == (first, 30)
    assert not free.text.startswith(" river")


@pytest.mark.parametrize("warpers", WARPERS.values(), ids=WARPERS)
@pytest.mark.parametrize("exclusions", [("e",), (" ", "th"), ("a", "e", "i", "o", "u")])
def test_excluded_texts_never_appear(
    engine: TinyEngine, warpers: WarperParams, exclusions: tuple[str, ...]
) -> None:
    free = only(run(engine, bound_job(warpers, can_stop_early=False)))

    held = only(run(engine, bound_job(warpers, exclusions=exclusions, can_stop_early=False)))

    assert any(each in free.text for each in exclusions)
    assert not any(each in held.text for each in exclusions)
    assert len(held.tokens) == 30


def test_exclusion_of_the_first_token_leaves_the_others_alone(engine: TinyEngine) -> None:
    (cat,) = spelling_as_written(engine.codec, " cat")
    favoured = AdjustmentParams(logit_bias=((cat, 1e4),))
    limits = {"exclusions": (" cat",), "is_exclusion_first_only": True}

    held = only(run(engine, replace(bound_job(**limits), adjustments=favoured)))

    assert held.tokens[0] != cat
    assert set(held.tokens[1:]) == {cat}


def test_text_that_another_token_completes_is_avoided_as_late_as_possible(
    gpt2: TinyEngine,
) -> None:
    free = only(run(gpt2, bound_job(can_stop_early=False)))
    across = free.text[3:9]

    held = only(run(gpt2, bound_job(exclusions=(across,), can_stop_early=False)))

    n_same = next(n for n, each in enumerate(held.tokens) if each != free.tokens[n])
    assert across in gpt2.codec.decode(free.tokens[: n_same + 1])
    assert across not in held.text


BATCH = [
    bound_job(DRAWN, exclusions=("e", "th")),
    bound_job(exclusions=("a",)),
    bound_job(DRAWN),
    bound_job(),
    bound_job(WARPERS["contrastive"], exclusions=("e",)),
    bound_job(WARPERS["nucleus"], inclusions=(" old house", " cat"), min_new_tokens=9),
    replace(bound_job(DRAWN), adjustments=AdjustmentParams(sequence_penalty=3, exceptions=("e",))),
]


def test_text_is_the_same_alone_and_beside_others(engine: TinyEngine) -> None:
    alone = [only(run(engine, each)) for each in BATCH]

    with ThreadPoolExecutor(len(BATCH)) as pool:
        together = list(pool.map(lambda each: only(run(engine, each)), BATCH))

    assert together == alone


@pytest.mark.parametrize("n_before", [1, 7])
@pytest.mark.parametrize("number", range(len(BATCH)))
def test_resumed_text_is_the_unbroken_one(gpt2: TinyEngine, number: int, n_before: int) -> None:
    whole = only(run(gpt2, BATCH[number]))

    resumed = gpt2.result(*gpt2.submit(BATCH[number], {0: whole.tokens[:n_before]}))

    assert only(resumed) == whole


@pytest.mark.parametrize("n_least", [1, 5])
def test_end_of_text_waits_for_the_least_number_of_tokens(engine: TinyEngine, n_least: int) -> None:
    (end,) = engine.preparer._eos_ids
    favoured = AdjustmentParams(logit_bias=((end, 1e4),))

    result = run(engine, replace(bound_job(min_new_tokens=n_least), adjustments=favoured))

    assert end not in only(result).tokens[:n_least]
    assert (only(result).tokens[n_least:], only(result).finish_reason) == ((end,), END)
    assert result.n_made == n_least + 1


def test_stop_string_ends_a_text_below_its_least_number_of_tokens(engine: TinyEngine) -> None:
    stops = StopParams(strings=("e",), ends_each=True)

    sequence = only(run(engine, replace(bound_job(DRAWN, min_new_tokens=30), stops=stops)))

    assert sequence.finish_reason is FinishReason.STOP
    assert len(sequence.tokens) < 30


def test_stuck_text_ends_without_a_token_of_its_own(engine: TinyEngine) -> None:
    job = bound_job(inclusions=(" the old house",), exclusions=("hous",))

    generation, ear = engine.submit(replace(job, log_probs=0))
    result = engine.result(generation, ear)

    text = only(result).text
    assert text
    assert " the old house".startswith(text)
    assert only(result).finish_reason is END
    assert result.n_made == result.n_generated == len(only(result).tokens) == len(ear.tokens[0])
    assert "".join(each.text for each in only(result).scores or ()) == text == ear.texts[0]
    assert not result.is_partial


def test_character_that_a_stuck_text_leaves_unfinished_is_its_last_tokens(
    engine: TinyEngine,
) -> None:
    job = replace(bound_job(inclusions=("a€",), exclusions=("€",)), log_probs=0)

    sequence = only(run(engine, job))

    assert sequence.text.rstrip("\ufffd") == "a" != sequence.text
    assert "".join(each.text for each in sequence.scores or ()) == sequence.text
    assert sequence.finish_reason is END


def test_text_that_is_stuck_at_once_is_empty(engine: TinyEngine) -> None:
    result = run(engine, bound_job(inclusions=(" cat",), exclusions=("c",)))

    assert (only(result).text, only(result).tokens, result.n_made) == ("", (), 0)
    assert only(result).finish_reason is END


def test_stuck_contrastive_search_ends_too(engine: TinyEngine) -> None:
    limits = {"inclusions": (" old house",), "exclusions": ("hous",)}

    sequence = only(run(engine, bound_job(WARPERS["contrastive"], **limits)))

    assert " old house".startswith(sequence.text)
    assert sequence.finish_reason is END


def test_siblings_of_a_stuck_text_go_on(gpt2: TinyEngine) -> None:
    favoured = AdjustmentParams(
        logit_bias=tuple((gpt2.codec.encode(text)[0], 99.0) for text in (" old", " river"))
    )
    limits = {"inclusions": (" old house", " river"), "exclusions": ("hous",)}
    job = replace(bound_job(DRAWN, **limits), n_sequences=8, adjustments=favoured)

    result = run(gpt2, job)

    assert {each.text for each in result.sequences} >= {" old", " river"}
    assert {each.finish_reason for each in result.sequences} == {END}
    assert result.n_made == sum(len(each.tokens) for each in result.sequences)


def test_text_that_is_to_go_on_fails_where_it_is_stuck(engine: TinyEngine) -> None:
    limits = {"inclusions": (" old house",), "exclusions": ("hous",), "ends_where_stuck": False}

    with pytest.raises(NoTokenLeft):
        run(engine, bound_job(**limits))


def test_model_that_fails_is_no_end_of_text(
    gpt2: TinyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = gpt2.model.score
    monkeypatch.setattr(gpt2.model, "score", lambda hidden: score(hidden) * float("nan"))

    with pytest.raises(EngineFailure):
        run(gpt2, bound_job())


def test_log_probs_are_those_of_the_model_whatever_is_forbidden(engine: TinyEngine) -> None:
    held = only(run(engine, replace(bound_job(exclusions=("e",)), log_probs=1)))

    told = held.scores or ()
    forced = tuple(each.token for each in told)
    (first, *_) = told
    free = only(run(engine, replace(bound_job(), log_probs=1)))
    assert forced == held.tokens
    assert first.top == (free.scores or ())[0].top
    assert all(each.log_prob is not None and each.log_prob <= 0 for each in told)
