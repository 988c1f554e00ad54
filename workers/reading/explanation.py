"""Which parts of a prompt speak for a text behind it (AtMan, arXiv:2301.08110).

The text is read once with the prompt as it is, and once for each part with less attention to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from msgspec.structs import replace

from neodim_sampling.prompt_items import IdsItem, PromptItem, TextItem
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
    target = read_target(preparer, job.prompt, job.target, "target")
    parts = cut_prompt(job, target.prompt.items)
    earlier = _earlier_tokens(job, target) if job.is_by_token else []
    plain = target.prompt.factors
    changed = [_multiplied(plain, each.factors) for each in (*parts, *earlier)]
    # A part that changes nothing is not read again, so its score is exactly 0.
    texts = [target.to_read(each) for each in (plain, *(each for each in changed if each != plain))]
    read = passes.run(texts, _log_probs)
    if read is None:
        return None
    left = iter(read)
    base = next(left)
    losses = [_differences(base, base if each == plain else next(left)) for each in changed]
    of_parts, of_earlier = losses[: len(parts)], losses[len(parts) :]
    explanations: list[Explanation] = []
    if job.is_by_token:
        for n, token in enumerate(target.text.ids):
            told = [(part, loss[n]) for part, loss in zip(parts, of_parts, strict=True)]
            told += [(part, loss[n]) for part, loss in zip(earlier[:n], of_earlier, strict=False)]
            explanations.append(_explanation(job, codec.piece(token), told))
    else:
        told = [(part, fsum(loss)) for part, loss in zip(parts, of_parts, strict=True)]
        explanations.append(_explanation(job, job.target, told))
    return ExplanationResult(
        item_kinds=tuple(map(_kind, job.prompt.items)),
        explanations=tuple(explanations),
        n_prompt=target.n_prompt,
        n_target=len(target.text.ids),
        n_variants=len(texts),
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
    """Both factors on each token, where together they are not 1."""
    places = {*one, *other}
    both = {place: one.get(place, 1.0) * other.get(place, 1.0) for place in places}
    return {place: factor for place, factor in both.items() if factor != 1}


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
