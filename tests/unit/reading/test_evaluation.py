"""What an evaluation tells is what a direct forward pass gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from reading_jobs import PATHS, SENTENCE, log_probs, prompt, reading
from tiny_engine import parts

from neodim_sampling.errors import InvalidParams, PromptTooLong
from neodim_sampling.prompt_items import ImageItem, ItemsPrompt, TextControl, TextItem
from neodim_sampling.text.words import spelling_as_written
from workers.contract.errors import MissingCapability
from workers.contract.reading_job import EvaluationJob, EvaluationResult

pytestmark = pytest.mark.model

TOLERANCE = 1e-4


def evaluation(asked: ItemsPrompt, expected: str) -> EvaluationJob:
    return EvaluationJob(model="m", prompt=asked, expected=expected)


def check(family: str, result: EvaluationResult, ids: list[int], expected: str) -> None:
    """The result is that of a direct pass over the prompt's ids and the text behind them."""
    _, codec = parts(family)
    behind = spelling_as_written(codec, expected)
    rows = log_probs(family, [*ids, *behind], len(behind))
    likeliest = rows.argmax(-1).tolist()
    total = float(rows[torch.arange(len(behind)), torch.tensor(behind)].sum())
    assert result.log_prob == pytest.approx(total, abs=TOLERANCE)
    assert (result.n_prompt, result.n_expected) == (len(ids), len(behind))
    assert result.n_characters == len(expected)
    assert result.likeliest_text == codec.decode(likeliest)
    assert result.is_greedy == (likeliest == behind)


@pytest.mark.parametrize(("family", "is_general"), PATHS)
@pytest.mark.parametrize("chunk", [5, 64])
def test_evaluation_is_that_of_a_direct_pass(family: str, is_general: bool, chunk: int) -> None:
    _, codec = parts(family)
    expected = " and a dog near the river"
    with reading(family, chunk=chunk, is_general=is_general) as engine:
        result = engine.do(evaluation(prompt(SENTENCE, [70, 71]), expected))

    check(family, result, [*codec.encode_bare(SENTENCE), 70, 71], expected)


def test_likeliest_text_is_greedy_and_another_is_not() -> None:
    _, codec = parts("gpt2")
    ids = [60, 61]
    likeliest = int(log_probs("gpt2", [*ids, 0], 1).argmax())
    text = codec.decode([likeliest])
    assert codec.encode_bare(text) == [likeliest], "it is spelt by itself"
    with reading("gpt2") as engine:
        likely = engine.do(evaluation(prompt(ids), text))
        unlikely = engine.do(evaluation(prompt(ids), "x"))

    assert likely.is_greedy
    assert not unlikely.is_greedy
    assert likely.likeliest_text == unlikely.likeliest_text == text


def test_prompt_that_was_read_before_is_read_on_from_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = SENTENCE * 3
    with reading("gpt2", chunk=64) as engine:
        first = engine.do(evaluation(prompt(long), " cat"))
        read: list[int] = []
        healthy = engine.engine.model.read

        def count(runs: list) -> object:
            read.extend(len(run.tokens) for run in runs)
            return healthy(runs)

        monkeypatch.setattr(engine.engine.model, "read", count)
        second = engine.do(evaluation(prompt(long), " dog"))

    ids = parts("gpt2")[1].encode_bare(long)
    check("gpt2", first, ids, " cat")
    check("gpt2", second, ids, " dog")
    assert sum(read) <= second.n_expected + 2


def test_empty_prompt_counts_one_token() -> None:
    model, _ = parts("gpt2")
    with reading("gpt2") as engine:
        result = engine.do(evaluation(prompt(""), "The cat"))

    check("gpt2", result, [parts("gpt2")[1].start_id or model.config.eos_token_id], "The cat")


def test_special_token_in_the_expected_text_is_one_token() -> None:
    _, codec = parts("gpt2")
    special = codec.alone(min(codec.special_ids))
    with reading("gpt2") as engine:
        result = engine.do(evaluation(prompt(SENTENCE), special))

    assert (result.n_expected, result.n_characters) == (1, len(special))


def test_controls_change_the_evaluation_and_neutral_ones_nothing() -> None:
    def controlled(factor: float) -> ItemsPrompt:
        control = TextControl(start=4, length=7, factor=factor)
        return prompt(TextItem(text=SENTENCE, controls=(control,)))

    with reading("gpt2") as engine:
        plain = engine.do(evaluation(prompt(SENTENCE), " cat"))
        neutral = engine.do(evaluation(controlled(1.0), " cat"))
        suppressed = engine.do(evaluation(controlled(0.0), " cat"))

    assert neutral == plain
    assert abs(suppressed.log_prob - plain.log_prob) > TOLERANCE


def test_prompt_and_text_that_do_not_fit_are_refused() -> None:
    with reading("gpt2", max_length=16) as engine:
        with pytest.raises(PromptTooLong, match=r"^prompt: \d+ input tokens and 2 behind them"):
            engine.do(evaluation(prompt([70] * 15), "XX"))
        result = engine.do(evaluation(prompt([70] * 14), "XX"))

    check("gpt2", result, [70] * 14, "XX")


@pytest.mark.parametrize("unknown", [-1, 511])
def test_unknown_ids_are_refused(unknown: int) -> None:
    assert parts("gpt2")[1].n_vocab == 511
    with (
        reading("gpt2") as engine,
        pytest.raises(InvalidParams, match=r"^prompt: token ids are from 0 to 510$"),
    ):
        engine.do(evaluation(prompt([unknown]), "a"))


def test_picture_is_refused_by_a_model_that_reads_none() -> None:
    with reading("gpt2") as engine, pytest.raises(MissingCapability, match="pictures"):
        engine.do(evaluation(prompt("A ", ImageItem(picture=b"x")), "a"))


def test_evaluations_among_strangers_are_those_of_a_direct_pass() -> None:
    texts = [SENTENCE * n for n in (1, 2, 3)] * 3
    with reading("llama", slots=6, chunk=7) as engine, ThreadPoolExecutor(12) as pool:
        strangers = [
            pool.submit(engine.engine.generate, temperature=1.3, seed=n, sequences_count=2)
            for n in range(6)
        ]
        results = list(
            pool.map(lambda text: engine.do(evaluation(prompt(text), " and a dog")), texts)
        )
        made = [each.result() for each in strangers]

    _, codec = parts("llama")
    for text, result in zip(texts, results, strict=True):
        check("llama", result, codec.encode_bare(text), " and a dog")
    with reading("llama", slots=6) as engine:
        alone = [
            engine.engine.generate(**{"temperature": 1.3, "seed": n, "sequences_count": 2})
            for n in range(6)
        ]
    assert [[s.tokens for s in each.sequences] for each in made] == [
        [s.tokens for s in each.sequences] for each in alone
    ]
