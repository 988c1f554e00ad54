"""How a prompt of items becomes the tokens that the model reads, with factors of attention."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompt_items import (
    IdsItem,
    ImageItem,
    PromptItem,
    TextControl,
    TextItem,
    combined,
)
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.tiles import Area, Tiles, factor_of_area, is_reached
from neodim_sampling.text.words import ANCHORS, spelling_as_written

Span = tuple[int, int]
"""First character and the one after the last."""


@dataclass(frozen=True, slots=True)
class ReadItem:
    """One item as tokens.

    Args:
        first: place of its first token among all of the prompt.
        ids: its tokens.
        spans: of a text, the characters that each token stands for, without spaces in front.
        factors: for the attention of the tokens under control, by the place in `ids`; one of 1
            keeps its token as it is.
        areas: of a picture, the part of it that each token stands for.
    """

    first: int
    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    factors: Mapping[int, float]
    areas: tuple[Area, ...] = ()

    @property
    def stop(self) -> int:
        """Place of the first token behind it."""
        return self.first + len(self.ids)


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
        """Factors of the tokens under control, by the place among all tokens."""
        return {
            item.first + place: factor
            for item in self.items
            for place, factor in item.factors.items()
        }

    @property
    def picture_spans(self) -> tuple[Span, ...]:
        """Of each picture, the place of its first token and the one behind its last."""
        return tuple((item.first, item.stop) for item in self.items if item.areas)


def read_items(
    codec: TextCodec,
    items: Sequence[PromptItem],
    eos_ids: Collection[int],
    tiles: Sequence[Tiles] = (),
) -> ReadPrompt:
    """The tokens of a prompt of texts, ids and pictures.

    Texts are read one by one, special tokens spelt in them as such, and no token is added. Where
    there is none at all, the model reads the one that begins a text, or else one that ends one.

    Args:
        codec: the model's.
        items: the prompt.
        eos_ids: ids that end a text of this model; may be empty.
        tiles: what the pictures among the items become, in their order.

    Raises:
        InvalidParams: an id is not in the vocabulary, or nothing stands for an empty prompt.
    """
    found: list[ReadItem] = []
    n_before = 0
    left = iter(tiles)
    for item in items:
        if isinstance(item, ImageItem):
            found.append(_read_picture(item, n_before, next(left)))
        else:
            found.append(_read_item(codec, item, n_before))
        n_before = found[-1].stop
    if n_before:
        return ReadPrompt(tuple(found), ())
    starts = [each for each in (codec.start_id, *sorted(eos_ids)) if each is not None]
    if not starts:
        raise InvalidParams("prompt", "must not be empty: this model has no token between texts")
    return ReadPrompt(tuple(found), (starts[0],))


def read_continuation(codec: TextCodec, text: str) -> ReadItem:
    """A text that goes on where another ends: without a space that the tokenizer would add.

    Args:
        codec: the model's.
        text: special tokens spelt in it count as such.
    """
    ids = spelling_as_written(codec, text)
    # Its characters are known of a text that begins with it, or of one that goes on with it.
    for before in ("", *ANCHORS):
        known, spans = codec.encode_with_spans(before + text)
        if known[-len(ids) :] == ids:
            own = [(max(0, start - len(before)), stop - len(before)) for start, stop in spans]
            trimmed = [_without_spaces(text, each) for each in own[-len(ids) :]]
            return ReadItem(0, tuple(ids), tuple(trimmed), {})
    raise AssertionError("a spelling is that of the text alone, or of one that goes on with it")


def _read_picture(item: ImageItem, first: int, tiles: Tiles) -> ReadItem:
    factors = {
        place: factor_of_area(area, item.controls)
        for place, area in enumerate(tiles.areas)
        if is_reached(area, item.controls)
    }
    ids = (tiles.token,) * len(tiles.areas)
    return ReadItem(first, ids, (), factors, tiles.areas)


def _read_item(codec: TextCodec, item: TextItem | IdsItem, first: int) -> ReadItem:
    if isinstance(item, TextItem):
        ids, spans = codec.encode_with_spans(item.text)
        spans = [_without_spaces(item.text, each) for each in spans]
        return ReadItem(first, tuple(ids), tuple(spans), factors_of_spans(spans, item.controls))
    if item.ids and (max(item.ids) >= codec.n_vocab or min(item.ids) < 0):
        raise InvalidParams("prompt", f"token ids are from 0 to {codec.n_vocab - 1}")
    by_place: dict[int, float] = {}
    for control in item.controls:
        by_place[control.index] = combined(by_place.get(control.index, 1.0), control.factor)
    return ReadItem(first, item.ids, (), by_place)


def _without_spaces(text: str, span: Span) -> Span:
    """The span of a token without the spaces in front of its text; one of spaces only as it is."""
    start, stop = span
    n_spaces = len(text[start:stop]) - len(text[start:stop].lstrip(" "))
    return span if n_spaces == stop - start else (start + n_spaces, stop)


def _factor_of_span(span: Span, controls: Sequence[TextControl]) -> float | None:
    """What all controls together make of a token's attention; None where there is none on it.

    One that covers a part of the token counts in proportion, unless it says otherwise.
    """
    start, stop = span
    factor: float | None = None
    for control in controls:
        n_shared = min(stop, control.start + control.length) - max(start, control.start)
        if n_shared > 0:
            share = 1.0 if control.is_complete else n_shared / (stop - start)
            own = 1 + (control.factor - 1) * share
            factor = combined(1.0 if factor is None else factor, own)
    return factor


def factors_of_spans(spans: Sequence[Span], controls: Sequence[TextControl]) -> Mapping[int, float]:
    """What controls make of the attention that a text's tokens get.

    Args:
        spans: the characters that each token stands for.
        controls: on characters of the same text.

    Returns:
        Factors by the place of the token, where one reaches it.
    """
    factors = (_factor_of_span(each, controls) for each in spans)
    return {place: factor for place, factor in enumerate(factors) if factor is not None}
