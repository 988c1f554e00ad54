"""How the word lists of a request become the token ids that sampling forbids or allows."""

from __future__ import annotations

from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import ConstraintParams
from neodim_sampling.row import TokenConstraints
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.words import word_token_sequences


def resolve_constraints(
    codec: TextCodec, params: ConstraintParams, eos_ids: frozenset[int]
) -> TokenConstraints:
    """The constraints of a request in ids of one vocabulary.

    Args:
        codec: the model's.
        params: words as the request has them.
        eos_ids: ids that end a text of this model; may be empty.

    Raises:
        InvalidParams: a word has no text, so that nothing would be allowed or forbidden by it.
    """
    allowed = None
    if params.words_whitelist is not None:
        allowed = _ids_of(_sequences(codec, "words_whitelist", params.words_whitelist))
    at_start = _sequences(codec, "words_blacklist_at_start", params.words_blacklist_at_start)
    return TokenConstraints(
        allowed_ids=allowed,
        banned_sequences=_sequences(codec, "words_blacklist", params.words_blacklist),
        banned_first_ids=frozenset(_ids_of(at_start)),
        no_repeat_ngram_size=params.no_repeat_ngram_size,
        eos_ids=eos_ids,
        can_stop_early=params.can_stop_early,
        can_be_empty=params.can_be_empty,
        banned_ids=params.banned_ids,
    )


def _sequences(codec: TextCodec, field: str, words: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """All spellings of all words, each once, in the order of the words."""
    spellings: dict[tuple[int, ...], None] = {}
    for word in words:
        sequences = [tuple(ids) for ids in word_token_sequences(codec, word) if ids]
        # A word of special tokens alone would come out as the space in front of it.
        if not sequences or (word.strip() and not codec.strip_special(word).strip()):
            raise InvalidParams(field, f"{word!r} has no tokens of its own in this model")
        spellings.update(dict.fromkeys(sequences))
    return tuple(spellings)


def _ids_of(sequences: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return tuple(sorted({token for sequence in sequences for token in sequence}))
