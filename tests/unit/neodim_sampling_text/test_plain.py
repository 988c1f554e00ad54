from __future__ import annotations

import pytest
from tokenizer_families import load_codec

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompts import PlainPrompt
from neodim_sampling.text.plain import plain_ids, whole_prompt


@pytest.mark.parametrize(("family", "ids"), [("gpt2", [67, 299]), ("llama", [1, 396])])
def test_text_begins_as_texts_of_its_model_do(family: str, ids: list[int]) -> None:
    assert plain_ids(load_codec(family), PlainPrompt(text="cat"), {0}) == ids


def test_ids_are_read_as_they_are() -> None:
    assert plain_ids(load_codec("llama"), PlainPrompt(ids=(396, 2, 510)), {2}) == (396, 2, 510)


@pytest.mark.parametrize("token", [511, 10**9, -1])
def test_id_outside_the_vocabulary_is_refused(token: int) -> None:
    with pytest.raises(InvalidParams, match=r"^prompt: token ids are from 0 to 510$"):
        plain_ids(load_codec("gpt2"), PlainPrompt(ids=(5, token)), {0})


@pytest.mark.parametrize(
    ("family", "eos_ids", "ids"),
    [("llama", {2}, [1]), ("gpt2", {9, 5}, [5])],
    ids=["what begins a text", "else what ends one"],
)
def test_empty_text_is_what_stands_between_texts(
    family: str, eos_ids: set[int], ids: list[int]
) -> None:
    assert plain_ids(load_codec(family), PlainPrompt(text=""), eos_ids) == ids


def test_empty_text_is_refused_where_nothing_stands_between_texts() -> None:
    with pytest.raises(InvalidParams, match=r"^prompt: must not be empty"):
        plain_ids(load_codec("gpt2"), PlainPrompt(text=""), set())


def test_special_token_spelt_in_a_text_counts_as_such() -> None:
    assert list(plain_ids(load_codec("llama"), PlainPrompt(text="</s>"), {2}))[:2] == [1, 2]


def test_everything_of_a_plain_prompt_is_used() -> None:
    fitted = whole_prompt(load_codec("llama"), [1, 396])

    assert fitted.input_ids == (1, 396)
    assert (fitted.preamble, fitted.used_prompt) == ("", "cat")
    counts = (fitted.n_original_input, fitted.n_original_prompt, fitted.n_used_prompt)
    assert (fitted.n_preamble, *counts) == (0, 2, 2, 2)


def test_prompt_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidParams, match=r"^prompt: there is no text"):
        whole_prompt(load_codec("gpt2"), [])
