"""Reading jobs done by a real engine on a tiny model, and what a direct pass gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from tiny_engine import FAMILIES, TinyEngine, parts, running
from torch import Tensor

from neodim_sampling.prompt_items import AttentionParams, IdsItem, ItemsPrompt, PromptItem, TextItem
from workers.contract.reading_job import ReadingJob, ReadingResult
from workers.engine.attention_control import AttentionControl
from workers.engine.text_model import Run
from workers.reading.passes import Passes
from workers.reading.reader import Reader

PATHS = [*((family, False) for family in FAMILIES), ("llama", True)]
"""Families, and whether the general path is taken although there is a faster one."""

SENTENCE = "The old cat sees a red house near the river."


def prompt(*items: PromptItem | str | list[int], **attention: object) -> ItemsPrompt:
    """A prompt of items; a string or a list of ids is one without controls."""
    made = [
        TextItem(text=each)
        if isinstance(each, str)
        else IdsItem(ids=tuple(each))
        if isinstance(each, list)
        else each
        for each in items
    ]
    return ItemsPrompt(items=tuple(made), attention=AttentionParams(**attention))


def unheard(n_done: int, n_expected: int) -> None:
    """Nobody asks how far a job is."""


class ReadingEngine:
    """An engine and what does reading jobs with it."""

    def __init__(self, engine: TinyEngine) -> None:
        self.engine = engine
        self.reader = Reader(engine.preparer, engine.codec, engine.model.n_layers)

    def passes(self) -> Passes:
        return Passes(self.engine.preparer.prepare_reading, self.engine.engine.submit, unheard)

    def do(self, job: ReadingJob) -> ReadingResult:
        result = self.reader.do(job, self.passes())
        assert result is not None, "it was cancelled"
        return result


@contextmanager
def reading(family: str = "gpt2", **options: object) -> Iterator[ReadingEngine]:
    """A running engine that is stopped afterwards."""
    with running(family, **options) as engine:
        yield ReadingEngine(engine)


@torch.inference_mode()
def log_probs(family: str, ids: Sequence[int], n_behind: int) -> Tensor:
    """[n_behind, V], of what may stand at the place of each of the last tokens."""
    model, _ = parts(family)
    scores: Tensor = model(torch.tensor([list(ids)])).logits[0]
    return scores.log_softmax(-1)[-n_behind - 1 : -1]


@torch.inference_mode()
def read_alone(
    engine: TinyEngine, ids: Sequence[int], n_behind: int, factors: Mapping[int, float]
) -> list[float]:
    """Log-probabilities of the last tokens in an engine's row with controlled attention."""
    control = AttentionControl.of(factors, AttentionParams())
    engine.model.cache.factors.control(0, control)
    hidden = engine.model.read([Run(0, 0, list(ids))]).hidden[0]
    engine.model.cache.factors.control(0, None)
    every = engine.model.score(hidden).log_softmax(-1)
    first = len(ids) - n_behind
    return [float(every[n - 1, ids[n]]) for n in range(first, len(ids))]
