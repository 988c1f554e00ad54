"""The only place that knows how a tokenizer family's oddities map text to tokens and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from itertools import groupby
from typing import Any, Protocol

NEWLINE_TOKEN = "</s>"
"""What tokenizers without a newline of their own (XGLM, OPT) use in its place."""

PROBE = "cat"
"""A word that every tokenizer gives back as it is, with whatever it always adds."""


class Tokenizer(Protocol):
    """What is used of a tokenizer of the transformers library."""

    @property
    def all_special_tokens(self) -> list[str]:
        """Texts of the registered special tokens."""

    @property
    def all_special_ids(self) -> list[int]:
        """Ids of the registered special tokens."""

    @property
    def bos_token_id(self) -> int | None:
        """Id of the token that begins a text; None where there is none."""

    def __len__(self) -> int:
        """Size of the vocabulary, added tokens included."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Token ids of a text."""

    def __call__(
        self, text: str, *, add_special_tokens: bool, return_offsets_mapping: bool
    ) -> Mapping[str, Any]:
        """Token ids of a text, `input_ids`, and their characters, `offset_mapping`."""

    def decode(
        self, token_ids: list[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool
    ) -> str:
        """Text of token ids."""

    def convert_tokens_to_ids(self, tokens: str) -> int | None:
        """Id of one token; None or the unknown token's id where there is no such token."""


class TextCodec:
    """Text to token ids and back, without loss wherever the vocabulary allows it.

    Args:
        tokenizer: probed once, here; left as it is.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._special_tokens = sorted({t for t in tokenizer.all_special_tokens if t}, key=len)
        self.special_ids = frozenset(tokenizer.all_special_ids)
        """Ids of all registered special tokens."""
        self.start_id = tokenizer.bos_token_id
        """Id of the token that begins a text; None where there is none."""
        self.n_vocab = len(tokenizer)
        """Number of real tokens; an id from here on means nothing."""
        leading = _leading_ids(tokenizer)
        newline_id = tokenizer.convert_tokens_to_ids(NEWLINE_TOKEN)
        self._newline_id = newline_id if newline_id in leading else None
        self.leading_ids = () if self._newline_id is not None else leading
        """Ids that `encode` puts in front of every text; often none."""
        self.ignored_ids = self.special_ids - {self._newline_id}
        """Ids that have no text."""
        self.fallback_bytes: Mapping[int, int] = _fallback_bytes(tokenizer)
        """Byte value by id, of a vocabulary that spells unknown characters byte by byte."""
        self._ignored_prefix = ""
        self._ignored_prefix = self.decode(self.encode(PROBE)).removesuffix(PROBE)
        self._probe_ids = self.encode(PROBE)
        self._pieces: dict[int, str] = {}

    def strip_special(self, text: str, *, after: str = "") -> str:
        """Delete registered special tokens, and those that a deletion brings about.

        Args:
            text: what to clean.
            after: a clean text that comes before it. Of a special token that begins in it, the
                part within `text` is deleted.

        Returns:
            The rest of `text`; `after` + rest holds no special token.
        """
        reach = max((len(token) for token in self._special_tokens), default=0)
        context = after[len(after) - min(reach, len(after)) :]
        if not any(token in context + text for token in self._special_tokens):
            return text
        closers = {token[-1] for token in self._special_tokens}
        kept = list(context)
        for character in text:
            kept.append(character)
            if character in closers:
                self._drop_special_at_end(kept, reach, len(context))
        return "".join(kept[len(context) :])

    def _drop_special_at_end(self, kept: list[str], reach: int, n_fixed: int) -> None:
        ending = "".join(kept[-reach:])
        lengths = [len(token) for token in self._special_tokens if ending.endswith(token)]
        if lengths:
            del kept[max(n_fixed, len(kept) - lengths[-1]) :]

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, behind `leading_ids`; none at all where the text gives no token."""
        if self._newline_id is not None:
            text = text.replace("\n", NEWLINE_TOKEN)
        ids = self._tokenizer.encode(text, add_special_tokens=False) if text else []
        return [*self.leading_ids, *ids] if ids else []

    def encode_bare(self, text: str) -> list[int]:
        """Token ids of a text without `leading_ids`."""
        return self.encode(text)[len(self.leading_ids) :]

    def encode_with_spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a text without `leading_ids`, and the characters that each stands for.

        Returns:
            Ids, and for each the first character and the one after the last. Tokens that spell
            parts of one character all have that character.
        """
        if not text:
            return [], []
        places = list(range(len(text) + 1))
        if self._newline_id is not None:
            widths = [len(NEWLINE_TOKEN) if each == "\n" else 1 for each in text]
            places = [n for n, width in enumerate(widths) for _ in range(width)] + [len(text)]
            text = text.replace("\n", NEWLINE_TOKEN)
        found = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        spans = [
            (places[start], places[stop - 1] + 1 if stop > start else places[start])
            for start, stop in found["offset_mapping"]
        ]
        return found["input_ids"], spans

    def decode(self, ids: Iterable[int]) -> str:
        """Text of token ids: special tokens left out, no spacing cleaned up.

        An incomplete UTF-8 sequence becomes U+FFFD.
        """
        visible = [each for each in ids if each not in self.ignored_ids]
        if self._newline_id is None:
            text = self._decode(visible)
        else:
            text = "".join(self._lines(visible, self._newline_id))
        return text.removeprefix(self._ignored_prefix)

    def alone(self, token: int) -> str:
        """What one token is decoded to by itself; a special one its name."""
        return self._decode([token])

    def showing_special(self) -> TextCodec:
        """The same, but special tokens are part of every text, spelt by their names."""
        shown = copy(self)
        shown.ignored_ids = frozenset()
        shown._pieces = {}
        return shown

    def piece(self, token: int) -> str:
        """What one token spells within a text; a special one its name."""
        if token not in self._pieces:
            if token in self.ignored_ids:
                self._pieces[token] = self._decode([token])
            else:
                whole = self.decode([*self._probe_ids, token])
                self._pieces[token] = whole.removeprefix(PROBE)
        return self._pieces[token]

    def _lines(self, ids: list[int], newline_id: int) -> Iterator[str]:
        # Each line is decoded on its own, so that a tokenizer that marks word starts drops the
        # space at a line's start as it does at a text's.
        for is_newline, group in groupby(ids, lambda each: each == newline_id):
            line = list(group)
            yield "\n" * len(line) if is_newline else self._decode(line)

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )


def _leading_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
    full = tokenizer.encode(PROBE, add_special_tokens=True)
    bare = tokenizer.encode(PROBE, add_special_tokens=False)
    starts = range(len(full) - len(bare) + 1)
    start = next((at for at in starts if full[at : at + len(bare)] == bare), 0)
    return tuple(full[:start])


def _fallback_bytes(tokenizer: Tokenizer) -> dict[int, int]:
    ids = [tokenizer.convert_tokens_to_ids(f"<0x{byte:02X}>") for byte in range(256)]
    letter = ids[ord("A")]
    if letter is None:
        return {}
    text = tokenizer.decode([letter], skip_special_tokens=False, clean_up_tokenization_spaces=False)
    if text != "A":
        return {}
    return {token: byte for byte, token in enumerate(ids) if token is not None}
