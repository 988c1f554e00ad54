"""What a worker without a model finds by reading: each item of a prompt counts as one token."""

from __future__ import annotations

from neodim_sampling.prompt_items import IdsItem, ImageItem, PromptItem, TextItem
from workers.contract.reading_job import (
    AreaScore,
    Embedding,
    EmbeddingJob,
    EmbeddingResult,
    EvaluationJob,
    EvaluationResult,
    Explanation,
    ExplanationJob,
    ExplanationResult,
    IdScore,
    PartScore,
    ReadingJob,
    ReadingResult,
    TextScore,
)

N_LAYERS = 2
_KINDS = {TextItem: "text", IdsItem: "token_ids", ImageItem: "image"}


def reading_result_of(job: ReadingJob) -> ReadingResult:
    """The result of a job that only reads."""
    if isinstance(job, EvaluationJob):
        return _evaluation(job)
    return _explanation(job) if isinstance(job, ExplanationJob) else _embedding(job)


def _evaluation(job: EvaluationJob) -> EvaluationResult:
    """Each word of the expected text has a log-probability of -2, and ! would be likelier."""
    n_words = len(job.expected.split())
    return EvaluationResult(
        n_prompt=len(job.prompt.items),
        n_expected=n_words,
        n_characters=len(job.expected),
        log_prob=-2.0 * n_words,
        is_greedy=False,
        likeliest_text="!" * n_words,
    )


def _explanation(job: ExplanationJob) -> ExplanationResult:
    """An item is one part, whose score is the factor; that of a part of the target is 1."""
    items = job.prompt.items
    targets = job.target.split() if job.is_by_token else [job.target]
    explanations = tuple(
        Explanation(
            target=target,
            items=tuple(_scores(each, job.factor) for each in items),
            of_target=(TextScore(start=0, length=len(targets[0]), score=1.0),) * bool(n),
        )
        for n, target in enumerate(targets)
    )
    return ExplanationResult(
        item_kinds=tuple(_KINDS[type(each)] for each in items),
        explanations=explanations,
        n_prompt=len(items),
        n_target=len(targets),
        n_variants=len(items) + 1,
    )


def _scores(item: PromptItem, score: float) -> tuple[PartScore, ...]:
    if isinstance(item, TextItem):
        return (TextScore(start=0, length=len(item.text), score=score),)
    if isinstance(item, IdsItem):
        return (IdScore(score=score),) * len(item.ids)
    return (AreaScore(left=0.0, top=0.0, width=1.0, height=1.0, score=score),)


def _embedding(job: EmbeddingJob) -> EmbeddingResult:
    """A vector tells its layer, and the prompt's items."""
    layers = [each % (N_LAYERS + 1) for each in job.layers]
    return EmbeddingResult(
        embeddings=tuple(
            Embedding(
                vectors=tuple(
                    (layer, pooling, (float(layer), float(len(prompt.items))))
                    for layer in layers
                    for pooling in job.pooling
                ),
                n_tokens=len(prompt.items),
                tokens=tuple(map(_spelt, prompt.items)) if job.tells_tokens else None,
            )
            for prompt in job.prompts
        )
    )


def _spelt(item: PromptItem) -> str:
    return item.text if isinstance(item, TextItem) else ""
