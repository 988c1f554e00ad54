"""What a row holds already is not read again, and the text is the same as if it were."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_engine import TinyEngine, answer, job, running

from workers.engine.slot_pool import shared_length
from workers.engine.text_model import Outcome, Run

pytestmark = pytest.mark.model

FAMILIES = ["gpt2", "llama"]
SENTENCE = "The old cat sees a red house near the river. "


class Counter:
    """Counts the prompt tokens that an engine's model reads."""

    def __init__(self, engine: TinyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.n_tokens = 0
        self._healthy = engine.model.read
        monkeypatch.setattr(engine.model, "read", self._read)

    def _read(self, runs: list[Run]) -> Outcome:
        self.n_tokens += sum(len(run.tokens) for run in runs)
        return self._healthy(runs)

    def take(self) -> int:
        n_tokens, self.n_tokens = self.n_tokens, 0
        return n_tokens


def n_input(result: Any) -> int:
    return int(result.prompt.n_used_input)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fields", [{"top_k": 1}, {"temperature": 1.2}, {"sequences_count": 3}])
def test_shared_beginning_is_read_once(
    family: str, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [SENTENCE * 4 + "One", SENTENCE * 4 + "A red house"]
    with running(family) as fresh:
        expected = answer(fresh.generate(prompt=prompts[1], **fields))
    with running(family) as engine:
        counter = Counter(engine, monkeypatch)
        first = engine.generate(prompt=prompts[0], **fields)
        counter.take()
        second = engine.generate(prompt=prompts[1], **fields)

    n_generated = sum(len(each.tokens) - 1 for each in second.sequences)
    assert answer(second) == expected
    assert counter.take() - n_generated <= n_input(second) - 0.8 * n_input(first)


@pytest.mark.parametrize("family", FAMILIES)
def test_chat_never_reads_an_old_turn_again(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"top_k": 1, "generated_tokens_count": 4, "max_total_tokens": 240}
    text, held, n_before = "A", list[int](), 0
    with running(family) as engine:
        counter = Counter(engine, monkeypatch)
        for turn in range(10):
            text += f" One {turn} house."
            generation, ear = engine.submit(job(prompt=text, **fields))
            result = engine.result(generation, ear)
            with running(family) as fresh:
                assert answer(result) == answer(fresh.generate(prompt=text, **fields))
            ids, made = list(generation.fitted.input_ids), list(result.sequences[0].tokens)
            # The answer's text may be made of other tokens when it comes back as a prompt.
            n_known = shared_length(ids, held)
            assert n_known >= n_before
            assert counter.take() == len(ids) - n_known + len(made) - 1
            text += result.sequences[0].text
            n_before, held = len(ids) - 1, [*ids, *made[:-1]]


def test_beginning_of_a_running_text_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"prompt": SENTENCE * 4, "top_k": 1}
    still = TinyEngine(is_running=False)
    counter = Counter(still, monkeypatch)
    first = still.submit(job(**fields))
    while not first[1].tokens:
        still.engine.step()
    n_first = counter.take()
    second = still.submit(job(**fields))

    still.engine.step()

    assert counter.take() <= 2 < n_first
    while not (first[1].ended.is_set() and second[1].ended.is_set()):
        still.engine.step()
    assert answer(still.result(*first)) == answer(still.result(*second))


def test_contrastive_search_reads_its_whole_prompt() -> None:
    fields = {"prompt": SENTENCE * 4, "top_k": 4, "penalty_alpha": 0.6}
    with running() as engine:
        first = answer(engine.generate(**fields))

        assert answer(engine.generate(**fields)) == first


def test_resumed_job_reads_only_what_its_old_row_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as engine:
        whole = engine.generate(prompt=SENTENCE * 4, temperature=1.0)
        counter = Counter(engine, monkeypatch)
        made = {0: whole.sequences[0].tokens[:6]}
        generation, ear = engine.submit(job(prompt=SENTENCE * 4, temperature=1.0), made)
        resumed = engine.result(generation, ear)

    assert resumed == whole
    assert counter.take() <= len(whole.sequences[0].tokens) - 6
