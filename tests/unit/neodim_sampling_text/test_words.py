from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from tokenizer_families import FAMILIES, load_codec, load_records

from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.words import spelling_as_written, word_token_sequences

WORDS = [
    each for each in load_records("tokenize_cases.jsonl") if each["kind"] == "word_token_lists"
]
FACTS = [each for each in load_records("tokenizer_facts.jsonl") if each["family"] in FAMILIES]


@pytest.mark.model
@pytest.mark.parametrize("record", WORDS, ids=lambda each: repr(each["word"]))
def test_word_is_spelt_as_recorded(smollm2: TextCodec, record: dict[str, Any]) -> None:
    assert word_token_sequences(smollm2, record["word"]) == record["lists"]


@pytest.mark.parametrize("facts", FACTS, ids=lambda each: each["family"])
def test_words_are_spelt_as_each_family_does(facts: dict[str, Any]) -> None:
    codec = load_codec(facts["family"])

    spelt = {word: word_token_sequences(codec, word) for word in facts["word_token_lists"]}

    assert spelt == facts["word_token_lists"]


@pytest.mark.parametrize("word", ["\nold", ".old", "\t", "1", "...", "a", "é", "😀"])
def test_glued_spelling_is_how_the_word_ends_a_text(word: str) -> None:
    codec = load_codec("llama")

    _, glued = word_token_sequences(codec, word)

    assert codec.encode(f"cat,{word}")[-len(glued) :] == glued


def test_word_means_the_same_with_and_without_a_space(family_codec: TextCodec) -> None:
    assert word_token_sequences(family_codec, "house") == word_token_sequences(
        family_codec, " house"
    )


def test_text_modules_load_neither_torch_nor_transformers() -> None:
    names = ("codec", "fitting", "words", "decoder", "stops")
    imports = "; ".join(f"import neodim_sampling.text.{name}" for name in names)
    check = (
        f"{imports}; import sys; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )

    finished = subprocess.run([sys.executable, "-c", check], check=False)

    assert finished.returncode == 0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", ["cat", " cat", "house", " old house", "\n", "\ncat", "a"])
def test_spelling_as_written_gives_the_text_and_no_space_of_the_tokenizers(
    family: str, text: str
) -> None:
    codec = load_codec(family)

    ids = spelling_as_written(codec, text)

    assert codec.decode([*codec.encode("house"), *ids]) == f"house{text}"


def test_spelling_as_written_is_the_tokenizers_where_none_gives_the_text() -> None:
    codec = load_codec("gpt2")

    assert spelling_as_written(codec, "<|endoftext|>") == [0]
    assert spelling_as_written(codec, "") == []
