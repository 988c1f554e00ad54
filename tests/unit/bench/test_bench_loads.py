from __future__ import annotations

from pathlib import Path

import pytest
from bench.loads import GREEDY, PLAYGROUND, PromptMaker, prompt_maker, requests_of

TINY = Path(__file__).parents[2] / "data" / "tiny"


@pytest.fixture(scope="module")
def maker() -> PromptMaker:
    return prompt_maker(str(TINY / "gpt2"))


def test_prompts_have_exactly_the_length_that_is_asked_for(maker: PromptMaker) -> None:
    load = maker.load(3, 17, 5, "seed")

    assert [len(prompt) for prompt in load.prompts] == [17, 17, 17]
    assert len(set(load.prompts)) == 3
    assert load.n_new_tokens == 15


def test_the_same_seed_gives_the_same_prompts_and_another_one_others(maker: PromptMaker) -> None:
    assert maker.load(2, 9, 1, ("a", 1)) == maker.load(2, 9, 1, ("a", 1))
    assert maker.load(2, 9, 1, ("a", 1)) != maker.load(2, 9, 1, ("a", 2))


def test_vocabulary_without_words_is_refused() -> None:
    class Wordless:
        def get_vocab(self) -> dict[str, int]:
            return {"a": 0, "Ġ": 1, "ĠA": 2, "Ġ7": 3, "Ġone": 4}

    with pytest.raises(ValueError, match="no words"):
        PromptMaker(Wordless())


def test_tokenizer_that_reads_words_together_is_refused() -> None:
    class Joining:
        def get_vocab(self) -> dict[str, int]:
            return {"Ġa": 0, "Ġb": 1, "Ġab": 2}

        def decode(self, ids: list[int]) -> str:
            return "".join("ab"[each % 2] for each in ids)

        def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
            return [2] * (len(text) // 2)

    with pytest.raises(ValueError, match="no exact length"):
        PromptMaker(Joining()).prompt(4, 1)


def test_requests_take_the_sampling_settings_in_turn(maker: PromptMaker) -> None:
    load = maker.load(3, 4, 5, 1)

    requests = requests_of(load, (GREEDY, PLAYGROUND))

    assert ["top_k" in each for each in requests] == [True, False, True]
    assert requests[1]["repetition_penalty_range"] == 512
    assert [each["prompt"] for each in requests] == list(load.texts)
    assert {(each["generated_tokens_count"], each["max_total_tokens"]) for each in requests} == {
        (5, 9)
    }
    assert len({each["seed"] for each in requests}) == 3
