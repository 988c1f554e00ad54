from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import torch
from items_jobs import SENTENCE, items_job
from tiny_engine import FAMILIES, Ear, TinyEngine, parts, running

from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.prompt_items import IdsItem, TextItem
from workers.contract.text_job import TextJob
from workers.contract.text_result import (
    FinishReason,
    TextDelta,
    TextResult,
    TokenScore,
    join_deltas,
)


class Recorder(Ear):
    """Hears deltas as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.deltas: list[TextDelta] = []

    def add(self, deltas: Sequence[TextDelta], n_generated: int) -> None:
        self.deltas.extend(deltas)
        super().add(deltas, n_generated)

    @property
    def made(self) -> dict[int, TextDelta]:
        indexes = {each.sequence for each in self.deltas}
        return {
            index: join_deltas(index, [each for each in self.deltas if each.sequence == index])
            for index in indexes
        }


def run(
    engine: TinyEngine, job: TextJob, made: Mapping[int, TextDelta] | None = None
) -> tuple[TextResult, Recorder]:
    heard = Recorder()
    generation = engine.preparer.prepare(job, made or {}, heard)
    engine.engine.submit(generation)
    return engine.result(generation, heard), heard


def forcing(token: int) -> AdjustmentParams:
    return AdjustmentParams(logit_bias=((token, 500.0),))


def told(result: TextResult) -> tuple[TokenScore, ...]:
    scores = result.sequences[0].scores
    assert scores is not None
    return scores


@pytest.mark.parametrize("family", FAMILIES)
def test_every_token_is_told_as_the_tokenizer_spells_it_alone(family: str) -> None:
    _, codec = parts(family)
    with running(family) as engine:
        result, heard = run(engine, items_job())

    scores = told(result)
    tokenizer = codec._tokenizer
    assert [each.alone for each in scores] == [
        tokenizer.decode([token], skip_special_tokens=False, clean_up_tokenization_spaces=False)
        for token in result.sequences[0].tokens
    ]
    assert all(each.log_prob is None and not each.top for each in scores)
    assert "".join(each.text for each in scores) == result.sequences[0].text
    assert heard.made[0].scores == scores


@pytest.mark.parametrize("family", FAMILIES)
def test_end_of_text_is_part_of_a_raw_text_and_marked(family: str) -> None:
    model, codec = parts(family)
    eos = model.config.eos_token_id
    with running(family) as engine:
        result, _ = run(engine, items_job(adjustments=forcing(eos), log_probs=0))

    (score,) = told(result)
    assert result.sequences[0].finish_reason is FinishReason.END_OF_TEXT
    assert result.n_made == 1
    assert (score.token, score.is_special, score.alone) == (eos, True, codec.alone(eos))
    # Where the end of a text stands for a newline too, that is how it is spelt within a text.
    spelt = codec.showing_special().decode([eos])
    assert (score.text, result.sequences[0].text) == (spelt, spelt)


def test_a_stop_string_may_be_the_name_of_a_special_token() -> None:
    _, codec = parts("llama")
    special = codec.start_id
    assert special is not None
    with running("llama") as engine:
        job = items_job(adjustments=forcing(special), stops=(codec.alone(special),))
        result, _ = run(engine, job)

    assert result.sequences[0].finish_reason is FinishReason.STOP
    assert (result.sequences[0].text, result.n_made) == ("", 1)


@torch.inference_mode()
def direct_log_probs(family: str, ids: Sequence[int]) -> list[float]:
    """What the library's own model makes of each token behind the first, in one plain pass."""
    model, _ = parts(family)
    every = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [float(every[n, token]) for n, token in enumerate(ids[1:])]


@pytest.mark.parametrize("family", FAMILIES)
def test_echo_tells_the_items_tokens_with_the_likelihood_of_all_but_the_first(family: str) -> None:
    _, codec = parts(family)
    ids = codec.encode_bare(" and a dog")
    items = (TextItem(text=SENTENCE), IdsItem(ids=tuple(ids)))
    with running(family, chunk=5) as engine:
        result, heard = run(engine, items_job(*items, echo=True, log_probs=2, max_new_tokens=3))

    echo = result.prompt.echo
    assert echo is not None
    assert [each.token for each in echo] == [*codec.encode_bare(SENTENCE), *ids]
    assert [each.alone for each in echo] == [codec.alone(each.token) for each in echo]
    assert echo[0].log_prob is None
    assert [each.log_prob for each in echo[1:]] == pytest.approx(
        direct_log_probs(family, [each.token for each in echo]), abs=1e-4
    )
    assert all(len(each.top) == 2 for each in echo[1:])
    assert heard.made[0].echo == echo
    assert heard.deltas[0].echo == echo


def test_echo_without_log_probs_tells_the_tokens_only() -> None:
    with running() as engine:
        result, heard = run(engine, items_job("a cat", echo=True, max_new_tokens=0))

    assert result.prompt.echo is not None
    assert "".join(each.text for each in result.prompt.echo) == "a cat"
    assert all(each.log_prob is None for each in result.prompt.echo)
    assert (result.n_made, heard.made[0].echo) == (0, result.prompt.echo)


def test_an_empty_prompt_is_one_token_that_is_not_echoed() -> None:
    with running() as engine:
        result, _ = run(engine, items_job("", echo=True, log_probs=0, max_new_tokens=2))

    assert (result.prompt.n_used_input, result.prompt.echo) == (1, ())
    assert result.n_made == 2


@pytest.mark.parametrize("n_steps", [1, 3, 8])
def test_a_resumed_job_repeats_neither_its_echo_nor_its_tokens(n_steps: int) -> None:
    job = items_job(echo=True, log_probs=1, n_sequences=2)
    broken = TinyEngine(chunk=64, is_running=False)
    heard = Recorder()
    broken.engine.submit(broken.preparer.prepare(job, {}, heard))
    for _ in range(n_steps):
        broken.engine.step()

    with running() as engine:
        undisturbed, _ = run(engine, job)
        resumed, later = run(engine, job, heard.made)

    assert undisturbed.prompt.echo is not None
    assert_same(resumed.prompt.echo, undisturbed.prompt.echo)
    for index, sequence in enumerate(undisturbed.sequences):
        assert sequence.scores is not None
        assert_same(heard.made[index].echo, undisturbed.prompt.echo)
        assert_same((*heard.made[index].scores, *later.made[index].scores), sequence.scores)
        assert_same(resumed.sequences[index].scores, sequence.scores)
    assert all(not each.echo for each in later.deltas)


def assert_same(scores: tuple[TokenScore, ...] | None, expected: tuple[TokenScore, ...]) -> None:
    """The same tokens, with the same likelihoods as far as the way of reading them allows."""
    assert scores is not None
    assert [(each.token, each.text) for each in scores] == [
        (each.token, each.text) for each in expected
    ]
    known = [each.log_prob for each in expected]
    assert [each.log_prob for each in scores] == [
        None if value is None else pytest.approx(value, abs=1e-4) for value in known
    ]


def test_items_are_told_only_where_they_are_not_the_clients() -> None:
    with running() as engine:
        same, _ = run(engine, items_job("a cat", max_new_tokens=1))
        changed, _ = run(engine, items_job("a cat", max_new_tokens=1, is_changed=True))

    assert same.prompt.items is None
    assert changed.prompt.items == (TextItem(text="a cat"),)


@pytest.mark.parametrize(("stop", "n_made"), [("\n", 1), ("\n\n", 2)])
@pytest.mark.parametrize("max_new_tokens", [2, 9])
def test_a_stop_is_found_in_tokens_of_single_bytes_though_a_later_one_could_change_them(
    stop: str, n_made: int, max_new_tokens: int
) -> None:
    _, codec = parts("llama")
    (newline,) = (token for token, byte in codec.fallback_bytes.items() if byte == ord("\n"))
    with running("llama") as engine:
        job = items_job(adjustments=forcing(newline), stops=(stop,), max_new_tokens=max_new_tokens)
        result, heard = run(engine, job)

    (sequence,) = result.sequences
    assert (sequence.finish_reason, result.n_made) == (FinishReason.STOP, n_made)
    assert (sequence.text, sequence.stop_match) == ("", stop)
    assert "".join(each.text for each in told(result)) == stop
    assert heard.texts.get(0, "") == ""
