"""How a prompt of items becomes the tokens that the model reads, with factors of attention."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompt_items import IdsItem, PromptItem, TextControl, TextItem
from neodim_sampling.text.codec import TextCodec

Span = tuple[int, int]
"""First character and the one after the last."""


@dataclass(frozen=True, slots=True)
class ReadItem:
    """One item as tokens.

    Args:
        first: place of its first token among all of the prompt.
        ids: its tokens.
        spans: of a text, the characters that each token stands for, without spaces in front.
        factors: by the place in `ids`, for the attention that a token gets, where it is not 1.
    """

    first: int
    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    factors: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class ReadPrompt:
    """A prompt as tokens.

    Args:
        items: one for each of the prompt's.
        start_ids: what the model reads where no item has a token; else empty.
    """

    items: tuple[ReadItem, ...]
    start_ids: tuple[int, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """All tokens, in their order."""
        return (*self.start_ids, *(token for item in self.items for token in item.ids))

    @property
    def factors(self) -> dict[int, float]:
        """Factors that are not 1, by the place among all tokens."""
        return {
            item.first + place: factor
            for item in self.items
            for place, factor in item.factors.items()
        }


def read_items(
    codec: TextCodec, items: Sequence[PromptItem], eos_ids: Collection[int]
) -> ReadPrompt:
    """The tokens of a prompt of texts and ids.

    Texts are read one by one, special tokens spelt in them as such, and no token is added. Where
    there is none at all, the model reads the one that begins a text, or else one that ends one.

    Args:
        codec: the model's.
        items: no pictures.
        eos_ids: ids that end a text of this model; may be empty.

    Raises:
        InvalidParams: an id is not in the vocabulary, or nothing stands for an empty prompt.
    """
    found: list[ReadItem] = []
    n_before = 0
    for item in items:
        found.append(_read_item(codec, item, n_before))
        n_before += len(found[-1].ids)
    if n_before:
        return ReadPrompt(tuple(found), ())
    starts = [each for each in (codec.start_id, *sorted(eos_ids)) if each is not None]
    if not starts:
        raise InvalidParams("prompt", "must not be empty: this model has no token between texts")
    return ReadPrompt(tuple(found), (starts[0],))


def _read_item(codec: TextCodec, item: PromptItem, first: int) -> ReadItem:
    if isinstance(item, TextItem):
        ids, spans = codec.encode_with_spans(item.text)
        spans = [_without_spaces(item.text, each) for each in spans]
        factors = [_factor_of_span(each, item.controls) for each in spans]
        return ReadItem(first, tuple(ids), tuple(spans), _not_one(factors))
    assert isinstance(item, IdsItem), "pictures are read elsewhere"
    if item.ids and (max(item.ids) >= codec.n_vocab or min(item.ids) < 0):
        raise InvalidParams("prompt", f"token ids are from 0 to {codec.n_vocab - 1}")
    factors = [1.0] * len(item.ids)
    for control in item.controls:
        factors[control.index] *= control.factor
    return ReadItem(first, item.ids, (), _not_one(factors))


def _without_spaces(text: str, span: Span) -> Span:
    """The span of a token without the spaces in front of its text; one of spaces only as it is."""
    start, stop = span
    n_spaces = len(text[start:stop]) - len(text[start:stop].lstrip(" "))
    return span if n_spaces == stop - start else (start + n_spaces, stop)


def _factor_of_span(span: Span, controls: Sequence[TextControl]) -> float:
    """What all controls together make of a token's attention.

    One that covers a part of the token counts in proportion, unless it says otherwise.
    """
    start, stop = span
    factor = 1.0
    for control in controls:
        n_shared = min(stop, control.start + control.length) - max(start, control.start)
        if n_shared > 0:
            share = 1.0 if control.is_complete else n_shared / (stop - start)
            factor *= 1 + (control.factor - 1) * share
    return factor


def _not_one(factors: Sequence[float]) -> Mapping[int, float]:
    return {place: factor for place, factor in enumerate(factors) if factor != 1}


def factors_of_spans(spans: Sequence[Span], controls: Sequence[TextControl]) -> Mapping[int, float]:
    """What controls make of the attention that a text's tokens get.

    Args:
        spans: the characters that each token stands for.
        controls: on characters of the same text.

    Returns:
        Factors by the token's place, where they are not 1.
    """
    return _not_one([_factor_of_span(each, controls) for each in spans])
