"""The parts of a prompt whose attention is scaled one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a prompt.

    Args:
        item: which of the prompt's items it belongs to.
        factors: for the attention of its tokens, by the place among all, where they are not 1.
        told: how it is told, with a score of 0.
    """

    item: int
    factors: Mapping[int, float]
    told: PartScore


def cut_prompt(job: ExplanationJob, read: Sequence[ReadItem]) -> list[Part]:
    """The parts of a job's prompt, in their order.

    Token ids, and the tiles of pictures, are always parts by themselves.

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
        return [
            place.part({n: job.factor}, _told_area(each))
            for n, each in enumerate(place.tokens.areas)
        ]
    if granularity is Granularity.TOKEN:
        return _tokens(job, place)
    return [
        place.part(_factors(job, place, span), _told(span))
        for span in text_spans(item.text, granularity, job.delimiter)
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


def _told_area(area: Area) -> AreaScore:
    return AreaScore(left=area.left, top=area.top, width=area.width, height=area.height, score=0.0)
