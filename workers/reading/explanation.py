"""Which parts of a prompt speak for a text behind it (AtMan, arXiv:2301.08110).

The text is read once with the prompt as it is, and once for each part with less attention to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from msgspec.structs import replace

from neodim_sampling.prompt_items import IdsItem, PromptItem, TextItem, combined
from neodim_sampling.text.codec import TextCodec
from workers.contract.reading_job import (
    Explanation,
    ExplanationJob,
    ExplanationResult,
    PartScore,
    Postprocessing,
    TextScore,
)
from workers.engine.generation import Generation
from workers.engine.prepare import Preparer
from workers.reading.parts import Part, cut_prompt
from workers.reading.passes import Passes
from workers.reading.targets import Target, read_target


def explain(
    job: ExplanationJob, preparer: Preparer, codec: TextCodec, passes: Passes
) -> ExplanationResult | None:
    """Read prompt and target as often as there are parts, and once more.

    Args:
        job: what was asked for.
        preparer: of the model.
        codec: of the model.
        passes: reads.

    Returns:
        None where it was cancelled.

    Raises:
        NeodimError: it cannot be done, or failed.
    """
    target = read_target(preparer, codec, job.prompt, job.target, "target")
    parts = cut_prompt(job, target.prompt.items)
    earlier = _earlier_tokens(job, target) if job.is_by_token else []
    plain = target.prompt.factors
    changed = [_multiplied(plain, each.factors) for each in (*parts, *earlier)]
    text = target.to_read(plain)
    # A part that changes nothing is not read again, so its score is exactly 0.
    variants = [
        dataclasses.replace(text, factors=each) for each in changed if not _is_same(each, plain)
    ]
    texts = [text, *variants]
    read = passes.run(texts, _log_probs)
    if read is None:
        return None
    base, *others = read
    left = iter(others)
    found = [
        _Found(part, _differences(base, base if _is_same(factors, plain) else next(left)))
        for part, factors in zip((*parts, *earlier), changed, strict=True)
    ]
    return ExplanationResult(
        item_kinds=tuple(map(_kind, job.prompt.items)),
        explanations=_explanations(job, codec, target, found),
        n_prompt=target.n_prompt,
        n_target=len(target.text.ids),
        n_variants=len(texts),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A part, and how much less likely each of the target's tokens gets without it."""

    part: Part
    losses: Sequence[float]


def _explanations(
    job: ExplanationJob, codec: TextCodec, target: Target, found: Sequence[_Found]
) -> tuple[Explanation, ...]:
    """One of the target as a whole, or one of each token with those in front of it."""
    if not job.is_by_token:
        whole = [(each.part, fsum(each.losses)) for each in found]
        return (_explanation(job, job.target, whole),)
    n_parts = len(found) - (len(target.text.ids) - 1)
    return tuple(
        _explanation(
            job,
            codec.piece(token),
            [(each.part, each.losses[n]) for each in found[: n_parts + n]],
        )
        for n, token in enumerate(target.text.ids)
    )


def _earlier_tokens(job: ExplanationJob, target: Target) -> list[Part]:
    """The target's own tokens that others come behind; they belong to no item of the prompt."""
    spans = target.text.spans[:-1]
    return [
        Part(
            len(job.prompt.items),
            {target.n_prompt + n: job.factor},
            TextScore(start=start, length=stop - start, score=0.0),
        )
        for n, (start, stop) in enumerate(spans)
    ]


def _multiplied(one: Mapping[int, float], other: Mapping[int, float]) -> Mapping[int, float]:
    """Both factors on each token that either is on."""
    places = {*one, *other}
    return {place: combined(one.get(place, 1.0), other.get(place, 1.0)) for place in places}


def _is_same(factors: Mapping[int, float], plain: Mapping[int, float]) -> bool:
    """Whether factors, on these tokens at least, are those that are there anyway."""
    return all(plain.get(place, 1.0) == factor for place, factor in factors.items())


def _log_probs(generation: Generation) -> list[float]:
    return [each.log_prob for each in generation.prompt_likelihoods]


def _differences(base: Sequence[float], changed: Sequence[float]) -> list[float]:
    """How much less likely each token got."""
    return [before - now for before, now in zip(base, changed, strict=True)]


def _explanation(
    job: ExplanationJob, target: str, told: Sequence[tuple[Part, float]]
) -> Explanation:
    """What is told of scores, in the order of their parts."""
    scores = shown([score for _, score in told], job.postprocessing, job.is_normalised)
    by_item: list[list[PartScore]] = [[] for _ in range(len(job.prompt.items) + 1)]
    for (part, _), score in zip(told, scores, strict=True):
        by_item[part.item].append(replace(part.told, score=score))
    *items, of_target = map(tuple, by_item)
    return Explanation(target=target, items=tuple(items), of_target=tuple(_texts(of_target)))


def _texts(scores: Iterable[PartScore]) -> Iterable[TextScore]:
    return (each for each in scores if isinstance(each, TextScore))


def shown(
    scores: Sequence[float], postprocessing: Postprocessing, is_normalised: bool
) -> list[float]:
    """Scores as they are told.

    Args:
        scores: all of one explanation.
        postprocessing: done first.
        is_normalised: whether the lowest becomes 0 and the highest 1; where all are alike, all
            become 0.
    """
    if postprocessing is Postprocessing.ABSOLUTE:
        scores = [abs(each) for each in scores]
    elif postprocessing is Postprocessing.SQUARE:
        scores = [each * each for each in scores]
    if not is_normalised or not scores:
        return list(scores)
    low, width = min(scores), max(scores) - min(scores)
    return [(each - low) / width if width else 0.0 for each in scores]


def _kind(item: PromptItem) -> str:
    if isinstance(item, TextItem):
        return "text"
    return "token_ids" if isinstance(item, IdsItem) else "image"
