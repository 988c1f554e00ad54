"""What workers publish of their tokenizers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizer

from workers.contract.tokenizer_store import TokenizerFile
from workers.models.tokenizer_file import tokenizer_file

pytestmark = pytest.mark.model

TINY = Path(__file__).parents[2] / "data" / "tiny"
FAMILIES = sorted(path.parent.name for path in TINY.glob("*/tokenizer.json"))
TEXTS = ["Grüße\n\tan </s> alle", "  你好 😀 ", ""]


def published(family: str) -> TokenizerFile:
    made = tokenizer_file(AutoTokenizer.from_pretrained(TINY / family))
    assert made is not None
    return made


@pytest.mark.parametrize("family", FAMILIES)
def test_a_published_tokenizer_does_as_the_models_own_file(family: str) -> None:
    ours = Tokenizer.from_str(published(family).unpack())
    own = Tokenizer.from_file(str(TINY / family / "tokenizer.json"))

    for text in TEXTS:
        encoding = own.encode(text)
        assert ours.encode(text).ids == encoding.ids
        assert ours.encode(text).tokens == encoding.tokens
        assert ours.decode(encoding.ids) == own.decode(encoding.ids)


def test_the_same_tokenizer_has_the_same_digest_and_others_have_others() -> None:
    digests = [published(family).digest for family in ("gpt2", "gpt2", "llama")]

    assert digests[0] == digests[1] != digests[2]


def test_a_published_tokenizer_cuts_and_pads_nothing() -> None:
    tokenizer = AutoTokenizer.from_pretrained(TINY / "gpt2")
    tokenizer.backend_tokenizer.enable_truncation(max_length=2)
    tokenizer.backend_tokenizer.enable_padding(length=9)

    made = tokenizer_file(tokenizer)

    assert made is not None
    found = json.loads(made.unpack())
    assert (found["truncation"], found["padding"]) == (None, None)


def test_a_tokenizer_written_in_python_has_no_file() -> None:
    class Letters(PreTrainedTokenizer):
        vocab_size = 256

        def get_vocab(self) -> dict[str, int]:
            return {chr(n): n for n in range(256)}

    assert tokenizer_file(Letters()) is None


def test_a_packed_file_is_smaller_and_unpacks_to_what_it_was() -> None:
    text = (TINY / "gpt2" / "tokenizer.json").read_text()

    made = TokenizerFile.of(text)

    assert made.unpack() == text
    assert len(made.packed) < len(text) / 2
