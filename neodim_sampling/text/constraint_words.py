"""How the words and texts of a request become the ids that sampling forbids, allows or spares."""

from __future__ import annotations

from neodim_sampling.counted_text import PenaltyTokens
from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import ConstraintParams
from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.row import TokenConstraints
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.words import spelling_as_written, word_token_sequences


def resolve_constraints(
    codec: TextCodec, params: ConstraintParams, eos_ids: frozenset[int]
) -> TokenConstraints:
    """The constraints of a request in ids of one vocabulary.

    Exclusions that hold for more than the first token are no ids: a text can be split in many
    ways (`ExcludedTexts`). A special token is one id, and forbidden as such.

    Args:
        codec: the model's.
        params: words and texts as the request has them.
        eos_ids: ids that end a text of this model; may be empty.

    Raises:
        InvalidParams: a word has no text, so that nothing would be allowed or forbidden by it; or
            an exclusion has special tokens among other text.
    """
    allowed = None
    if params.words_whitelist is not None:
        allowed = _ids_of(_sequences(codec, "words_whitelist", params.words_whitelist))
    at_start = _sequences(codec, "words_blacklist_at_start", params.words_blacklist_at_start)
    options = _spellings(codec, "completion_bias_inclusion", params.inclusions)
    excluded = _spellings(codec, "completion_bias_exclusion", params.exclusions)
    first_only = excluded if params.is_exclusion_first_only else ()
    firsts = tuple(sorted({ids[0] for ids in options})) if params.is_inclusion_first_only else None
    return TokenConstraints(
        allowed_ids=allowed,
        banned_sequences=_sequences(codec, "words_blacklist", params.words_blacklist),
        banned_first_ids=frozenset((*_ids_of(at_start), *(ids[0] for ids in first_only))),
        no_repeat_ngram_size=params.no_repeat_ngram_size,
        eos_ids=eos_ids,
        can_stop_early=params.can_stop_early,
        can_be_empty=params.can_be_empty,
        banned_ids=(*params.banned_ids, *_special_ids(codec, params, excluded)),
        min_new_tokens=params.min_new_tokens,
        options=() if params.is_inclusion_first_only else options,
        first_ids=firsts if params.inclusions else None,
        ends_where_stuck=params.ends_where_stuck,
    )


def resolve_penalties(
    codec: TextCodec, params: AdjustmentParams, eos_ids: frozenset[int]
) -> PenaltyTokens:
    """The texts of a request's penalties in ids of one vocabulary.

    Spared are all ids of the exceptions, as they are written and with the space that the
    tokenizer may put in front, and those that end a text.
    """
    exempt = set(eos_ids)
    for text in params.exceptions:
        exempt.update(codec.encode_bare(text), spelling_as_written(codec, text))
    return PenaltyTokens(
        counted_ids=tuple(codec.encode_bare(params.counted_text)), exempt_ids=frozenset(exempt)
    )


def _spellings(codec: TextCodec, field: str, texts: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """The spelling of each text as it is written."""
    found = [tuple(spelling_as_written(codec, text)) for text in texts]
    for text, ids in zip(texts, found, strict=True):
        if not ids:
            raise InvalidParams(field, f"{text[:40]!r} has no tokens in this model")
    return tuple(found)


def _special_ids(
    codec: TextCodec, params: ConstraintParams, excluded: tuple[tuple[int, ...], ...]
) -> list[int]:
    """Exclusions that are a special token each."""
    found: list[int] = []
    for text, ids in zip(params.exclusions, excluded, strict=True):
        if params.is_exclusion_first_only or codec.ignored_ids.isdisjoint(ids):
            continue
        if len(ids) > 1:
            problem = f"{text[:40]!r} has a special token among other text; list it by itself"
            raise InvalidParams("completion_bias_exclusion", problem)
        found += ids
    return found


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
