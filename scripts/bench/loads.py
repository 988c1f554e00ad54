"""What is asked of every program that is measured: prompts of an exact length, and how to go on."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from transformers import AutoTokenizer

Fields = Mapping[str, Any]
"""Fields of the Neodim protocol."""

GREEDY: Fields = {"top_k": 1}
PLAYGROUND: Fields = {
    "temperature": 0.6,
    "tfs": 0.95,
    "repetition_penalty": 1.25,
    "repetition_penalty_range": 512,
}
SAMPLERS: Mapping[str, Sequence[Fields]] = {
    "greedy": (GREEDY,),
    "playground": (PLAYGROUND,),
    "top_p": ({"top_p": 0.9},),
    "typical": ({"typical": 0.2},),
    "temperature": ({"temperature": 0.8},),
    "mix": (GREEDY, PLAYGROUND, {"top_p": 0.9}, {"typical": 0.2}, {"temperature": 0.8}),
}
"""Sampling settings by name; the requests of a batch take them in turn."""

WORD_MARKS = ("Ġ", "▁")
"""How vocabularies write the blank in front of a word: byte-level BPE, SentencePiece."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests that arrive at once.

    Args:
        prompts: token ids of each.
        texts: the same prompts as text.
        new_tokens: tokens to generate for each, whatever they are.
    """

    prompts: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    new_tokens: int

    @property
    def n_new_tokens(self) -> int:
        """Tokens to generate in all."""
        return self.new_tokens * len(self.prompts)


class PromptMaker:
    """Makes prompts of random words that are one token each, so that text and tokens agree.

    Args:
        tokenizer: the model's.

    Raises:
        ValueError: its vocabulary has no such words.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        marked = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
        self._ids = [index for token, index in marked if _is_word(token)]
        if len(self._ids) < 2:
            raise ValueError("the vocabulary has no words that are one token each")

    def prompt(self, n_tokens: int, seed: object) -> tuple[int, ...]:
        """Tokens of one prompt; the same seed gives the same ones.

        Raises:
            ValueError: its text would be read as other tokens.
        """
        ids = random.Random(repr(seed)).choices(self._ids, k=n_tokens)
        read = self._tokenizer.encode(self.text(ids), add_special_tokens=False)
        if read != ids:
            raise ValueError("the tokenizer reads words together, so prompts have no exact length")
        return tuple(ids)

    def text(self, ids: Sequence[int]) -> str:
        """The text of some tokens."""
        return str(self._tokenizer.decode(list(ids)))

    def load(self, n_requests: int, prompt_tokens: int, new_tokens: int, seed: object) -> Load:
        """A load of different prompts, all of the same length."""
        prompts = [self.prompt(prompt_tokens, (seed, i)) for i in range(n_requests)]
        return self.load_of(prompts, new_tokens)

    def load_of(self, prompts: Sequence[tuple[int, ...]], new_tokens: int) -> Load:
        """A load of these prompts."""
        return Load(tuple(prompts), tuple(map(self.text, prompts)), new_tokens)


def prompt_maker(source: str) -> PromptMaker:
    """The prompt maker of a model's directory."""
    return PromptMaker(AutoTokenizer.from_pretrained(source))


def requests_of(load: Load, samplers: Sequence[Fields] = (GREEDY,)) -> list[dict[str, Any]]:
    """A load as Neodim requests, which take the sampling settings in turn."""
    settings = islice(cycle(samplers), len(load.texts))
    return [
        {
            "prompt": text,
            "generated_tokens_count": load.new_tokens,
            "max_total_tokens": len(prompt) + load.new_tokens,
            "seed": number,
            **fields,
        }
        for number, (text, prompt, fields) in enumerate(
            zip(load.texts, load.prompts, settings, strict=True)
        )
    ]


def _is_word(token: str) -> bool:
    word = token[1:]
    return token.startswith(WORD_MARKS) and word.isascii() and word.isalpha() and word.islower()
