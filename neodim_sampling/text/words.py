"""How the words and texts that a request lists are spelt in tokens, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator

from neodim_sampling.text.codec import PROBE, TextCodec

ANCHORS = ("\n", "a", ".")
"""Texts to glue a word to; the first one that does not merge with the word counts."""


def word_token_sequences(codec: TextCodec, word: str) -> list[list[int]]:
    """The two spellings of a word: at the start of a text, and within one.

    A word with and without a space in front means the same. The second spelling is that of the
    word glued to what precedes it, or, where this is the first again (byte-level BPE), that of the
    word behind a space. The word "" is the lone space: an empty spelling and that of the space.

    Returns:
        Two sequences of ids, either possibly empty; no special ids in them.
    """
    is_spaced = word.startswith(" ")
    unspaced = word.lstrip() if is_spaced else word
    spaced = word if is_spaced else f" {word}"
    at_start = codec.encode_bare(unspaced)
    within = _glued(codec, unspaced)
    if within == at_start:
        within = codec.encode_bare(spaced)
    return [[each for each in ids if each not in codec.ignored_ids] for ids in (at_start, within)]


def spelling_as_written(codec: TextCodec, text: str) -> list[int]:
    """Ids that spell a text behind other text, without a space that the tokenizer would add.

    Where no spelling gives exactly the text (it has special tokens, or characters that the
    vocabulary has not), that of the tokenizer, space and all.
    """
    usual, before = codec.encode_bare(text), codec.encode(PROBE)
    for ids in (usual, *_all_glued(codec, text)):
        if codec.decode([*before, *ids]) == PROBE + text:
            return ids
    return usual


def _glued(codec: TextCodec, word: str) -> list[int]:
    return next(_all_glued(codec, word), codec.encode_bare(word))


def _all_glued(codec: TextCodec, word: str) -> Iterator[list[int]]:
    for anchor in ANCHORS:
        before = codec.encode(anchor)
        ids = codec.encode(anchor + word)
        if ids[: len(before)] == before:
            yield ids[len(before) :]
