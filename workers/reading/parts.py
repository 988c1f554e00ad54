"""The parts of a prompt whose attention is scaled one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt

from neodim_sampling.prompt_items import IdsItem, ImageItem, PromptItem, TextControl
from neodim_sampling.text.items import ReadItem, Span, factors_of_spans
from neodim_sampling.text.tiles import Area
from workers.contract.reading_job import (
    AreaScore,
    ExplanationJob,
    Granularity,
    IdScore,
    PartScore,
    TextScore,
)
from workers.reading.granularity import text_spans

WANTED_PARTS = 30
"""Parts that a prompt is cut into where nobody says how, as nearly as that can be."""

COMMON = (Granularity.TOKEN, Granularity.WORD, Granularity.SENTENCE, Granularity.PARAGRAPH)
"""Granularities to choose from then, the finest first."""

TILES_OF_A_SIDE = {Granularity.TOKEN: 1, Granularity.WORD: 2, Granularity.SENTENCE: 4}
"""Tiles that a part of a picture is wide and high; where none is named, it is all of them."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a prompt.

    Args:
        item: which of the prompt's items it belongs to.
        factors: for the attention of its tokens, by the place among all.
        told: how it is told, with a score of 0.
    """

    item: int
    factors: Mapping[int, float]
    told: PartScore


def cut_prompt(job: ExplanationJob, read: Sequence[ReadItem]) -> list[Part]:
    """The parts of a job's prompt, in their order.

    Token ids are always parts by themselves. Of a picture, words are two tiles wide and high,
    sentences four; otherwise, unless its tokens are asked for, it is one part.

    Args:
        job: its prompt, and how that is cut.
        read: the prompt's items as tokens.
    """
    granularities = COMMON if job.granularity is None else (job.granularity,)
    cuts = [_cut(job, granularity, read) for granularity in granularities]
    return min(cuts, key=lambda parts: abs(len(parts) - WANTED_PARTS))


def _cut(job: ExplanationJob, granularity: Granularity, read: Sequence[ReadItem]) -> list[Part]:
    return [
        part
        for number, (item, tokens) in enumerate(zip(job.prompt.items, read, strict=True))
        for part in _cut_item(job, granularity, item, Place(number, tokens))
    ]


@dataclass(frozen=True, slots=True)
class Place:
    """An item's number, and its tokens."""

    number: int
    tokens: ReadItem

    def part(self, factors: Mapping[int, float], told: PartScore) -> Part:
        """A part of the item, from factors by the place among the item's own tokens."""
        first = self.tokens.first
        return Part(self.number, {first + n: each for n, each in factors.items()}, told)


def _cut_item(
    job: ExplanationJob, granularity: Granularity, item: PromptItem, place: Place
) -> list[Part]:
    if isinstance(item, IdsItem):
        return [place.part({n: job.factor}, IdScore(score=0.0)) for n in range(len(item.ids))]
    if isinstance(item, ImageItem):
        return _blocks(job, TILES_OF_A_SIDE.get(granularity), place)
    if granularity is Granularity.TOKEN:
        return _tokens(job, place)
    return [
        place.part(_factors(job, place, span), _told(span))
        for span in text_spans(item.text, granularity, job.delimiter)
    ]


def _blocks(job: ExplanationJob, n_tiles: int | None, place: Place) -> list[Part]:
    """The squares of a picture that have so many tiles a side, or what the edge leaves of them.

    Args:
        job: what was asked for.
        n_tiles: None = all there are.
        place: the picture's, whose tiles come row by row.
    """
    areas = place.tokens.areas
    n_side = isqrt(len(areas))
    size = n_side if n_tiles is None else n_tiles
    blocks: dict[tuple[int, int], list[int]] = {}
    for n in range(len(areas)):
        blocks.setdefault((n // n_side // size, n % n_side // size), []).append(n)
    return [
        place.part(dict.fromkeys(tiles, job.factor), _told_area(areas[tiles[0]], areas[tiles[-1]]))
        for tiles in blocks.values()
    ]


def _tokens(job: ExplanationJob, place: Place) -> list[Part]:
    """Each token of a text; those that spell one character together are one part."""
    places: dict[Span, list[int]] = {}
    for n, (start, stop) in enumerate(place.tokens.spans):
        if stop > start:
            places.setdefault((start, stop), []).append(n)
    return [
        place.part(dict.fromkeys(numbers, job.factor), _told(span))
        for span, numbers in places.items()
    ]


def _factors(job: ExplanationJob, place: Place, span: Span) -> Mapping[int, float]:
    start, stop = span
    control = TextControl(
        start=start, length=stop - start, factor=job.factor, is_complete=job.is_complete
    )
    return factors_of_spans(place.tokens.spans, [control])


def _told(span: Span) -> TextScore:
    start, stop = span
    return TextScore(start=start, length=stop - start, score=0.0)


def _told_area(first: Area, last: Area) -> AreaScore:
    """The rectangle from one tile to another."""
    return AreaScore(
        left=first.left,
        top=first.top,
        width=last.left + last.width - first.left,
        height=last.top + last.height - first.top,
        score=0.0,
    )
