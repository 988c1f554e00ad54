from __future__ import annotations

import pytest
from items_jobs import items_job
from tiny_engine import PATIENCE_S, Ear, TinyEngine, running
from tiny_engine import job as neodim_job

from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import WarperParams
from workers.contract.text_job import TextJob
from workers.contract.text_result import TextDelta, TextResult
from workers.engine.parts import cancelling
from workers.engine.results import make_result


def drawn_job(n_sequences: int, **fields: object) -> TextJob:
    return items_job(n_sequences=n_sequences, warpers=WarperParams(), **fields)


def run(
    engine: TinyEngine, job: TextJob, made: dict[int, TextDelta] | None = None
) -> tuple[TextResult, Ear]:
    ear = Ear()
    generations = engine.preparer.prepare_parts(job, made or {}, ear)
    for each in generations:
        engine.engine.submit(each)
    assert ear.ended.wait(PATIENCE_S)
    return make_result(generations, engine.codec), ear


def test_more_sequences_than_rows_are_those_that_many_rows_give() -> None:
    job = drawn_job(11, echo=True, log_probs=0)
    with running(slots=16) as wide:
        expected, _ = run(wide, job)
    with running(slots=4) as narrow:
        result, ear = run(narrow, job)

    assert [each.tokens for each in result.sequences] == [
        each.tokens for each in expected.sequences
    ]
    assert result.n_made == expected.n_made == 11 * 12
    assert ear.tokens == {n: list(each.tokens) for n, each in enumerate(result.sequences)}
    assert len(set(map(tuple, ear.tokens.values()))) > 1


def test_the_best_of_all_parts_are_kept() -> None:
    everyone = drawn_job(9, log_probs=0)
    with running(slots=2) as engine:
        every, _ = run(engine, everyone)
        best, _ = run(engine, drawn_job(9, n_kept=2))

    def mean(n: int) -> float:
        scores = every.sequences[n].scores or ()
        return sum(each.log_prob or 0.0 for each in scores) / len(scores)

    likeliest = sorted(range(9), key=mean, reverse=True)[:2]
    assert [each.tokens for each in best.sequences] == [
        every.sequences[n].tokens for n in likeliest
    ]
    assert best.n_made == 9 * 12


def test_parts_go_on_where_an_earlier_attempt_stopped() -> None:
    job = drawn_job(5)
    with running(slots=2) as engine:
        whole, _ = run(engine, job)
        made = {
            n: TextDelta(sequence=n, text="", tokens=whole.sequences[n].tokens[: 2 * n])
            for n in range(1, 4)
        }
        resumed, ear = run(engine, job, made)

    assert [each.tokens for each in resumed.sequences] == [each.tokens for each in whole.sequences]
    assert ear.tokens[2] == list(whole.sequences[2].tokens[4:])


def test_a_cancelled_job_ends_in_all_its_parts() -> None:
    engine = TinyEngine(slots=2, is_running=False)
    ear = Ear()
    generations = engine.preparer.prepare_parts(drawn_job(6), {}, ear)
    for each in generations:
        engine.engine.submit(each)
    engine.engine.step()

    cancelling(generations)()
    engine.engine.step()

    assert ear.ended.is_set()
    assert ear.error is None
    assert make_result(generations, engine.codec).is_partial


def test_a_part_that_fails_ends_the_others_with_its_error() -> None:
    engine = TinyEngine(slots=2, is_running=False)
    ear = Ear()
    generations = engine.preparer.prepare_parts(drawn_job(6), {}, ear)
    for each in generations:
        engine.engine.submit(each)

    generations[0].end(ValueError("broken"))

    assert all(each.is_cancelled for each in generations)
    engine.engine.step()
    engine.engine.step()
    assert ear.ended.is_set()
    assert str(ear.error) == "broken"


def test_sequences_that_wait_for_each_other_are_not_parted() -> None:
    engine = TinyEngine(slots=2, is_running=False)
    job = neodim_job(sequences_count=3)

    with pytest.raises(InvalidParams, match="sequences_count: must be at most 2"):
        engine.preparer.prepare_parts(job, {}, Ear())
