"""The states that a model has when it reads prompts, each layer's as one vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompt_items import ItemsPrompt
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.items import ReadPrompt
from workers.contract.errors import EngineFailure
from workers.contract.reading_job import Embedding, EmbeddingJob, EmbeddingResult
from workers.engine.generation import Generation
from workers.engine.pictures import PlacedPicture
from workers.engine.prepare import Preparer
from workers.engine.questions import Question, TextToRead
from workers.reading.passes import Passes
from workers.reading.pooling import Pools


def embed(
    job: EmbeddingJob, preparer: Preparer, codec: TextCodec, n_layers: int, passes: Passes
) -> EmbeddingResult | None:
    """Read each prompt once.

    Args:
        job: what was asked for.
        preparer: of the model.
        codec: of the model.
        n_layers: of the model.
        passes: reads.

    Returns:
        None where it was cancelled.

    Raises:
        NeodimError: it cannot be done, or failed.
    """
    layers = tuple(dict.fromkeys(_layer(each, n_layers) for each in job.layers))
    prompts = [_read(preparer, each) for each in job.prompts]
    texts = [
        TextToRead(
            ids=read.ids,
            question=Question(pool=Pools(len(read.ids), layers, job.pooling, read.factors)),
            factors=read.factors,
            attention=prompt.attention,
            pictures=pictures,
        )
        for prompt, (read, pictures) in zip(job.prompts, prompts, strict=True)
    ]
    pools = passes.run(texts, _pools)
    if pools is None:
        return None
    return EmbeddingResult(
        embeddings=tuple(
            _embedding(job, codec, read, each)
            for (read, _), each in zip(prompts, pools, strict=True)
        )
    )


def _layer(layer: int, n_layers: int) -> int:
    """A layer's number, counted from the input embeddings."""
    if not -n_layers - 1 <= layer <= n_layers:
        raise InvalidParams(
            "layers", f"must be from {-n_layers - 1} to {n_layers} with this model, not {layer}"
        )
    return layer % (n_layers + 1)


def _read(preparer: Preparer, prompt: ItemsPrompt) -> tuple[ReadPrompt, Sequence[PlacedPicture]]:
    read, pictures = preparer.fitter.read_items(prompt)
    preparer.fitter.check_room(len(read.ids))
    return read, pictures


def _pools(generation: Generation) -> Pools:
    assert isinstance(generation.pool, Pools), "it was asked with one"
    return generation.pool


def _embedding(job: EmbeddingJob, codec: TextCodec, read: ReadPrompt, pools: Pools) -> Embedding:
    vectors = tuple(
        (layer, pooling, _numbers(pools.vector(layer, pooling), job.is_normalised))
        for layer in pools.layers
        for pooling in dict.fromkeys(job.pooling)
    )
    texts = tuple(codec.alone(token) for item in read.items for token in item.ids)
    return Embedding(
        vectors=vectors, n_tokens=len(read.ids), tokens=texts if job.tells_tokens else None
    )


def _numbers(vector: Tensor, is_normalised: bool) -> tuple[float, ...]:
    if not vector.isfinite().all():
        raise EngineFailure("the model failed: its states are not numbers")
    length = torch.linalg.vector_norm(vector)
    return tuple((vector / length if is_normalised and length > 0 else vector).tolist())
