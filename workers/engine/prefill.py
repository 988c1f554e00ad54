"""Reading prompts: in chunks between the steps of running rows, one prompt after another."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from workers.engine.contrastive import is_contrastive
from workers.engine.generation import Generation
from workers.engine.sequence import Sequence
from workers.engine.text_model import TextModel


@dataclass(slots=True)
class PrefillRun:
    """One text to read, and the sequences that begin with it.

    Args:
        generation: whose it is.
        sequences: the first one's row is read into; the others get copies.
        tokens: the text.
        n_read: tokens read so far.
    """

    generation: Generation
    sequences: list[Sequence]
    tokens: list[int]
    n_read: int = 0


def plan_prefill(generation: Generation) -> list[PrefillRun]:
    """What has to be read before a generation can go on.

    Sequences that have nothing of their own yet share one reading.
    """
    growing = generation.growing
    if all(not sequence.row.generated for sequence in growing):
        return [PrefillRun(generation, growing, list(generation.fitted.input_ids))]
    return [
        PrefillRun(generation, [each], [*each.row.input_ids, *each.row.generated])
        for each in growing
    ]


class Prefill:
    """The prompts that wait to be read.

    Args:
        model: reads them.
        chunk: most tokens of one forward pass.
    """

    def __init__(self, model: TextModel, chunk: int) -> None:
        self._model = model
        self._chunk = chunk
        self._runs: deque[PrefillRun] = deque()

    def add(self, generation: Generation) -> None:
        """Put a generation's reading in line; its sequences have their slots."""
        self._runs.extend(plan_prefill(generation))

    def remove(self, generation: Generation) -> None:
        """Forget a generation that ended."""
        self._runs = deque(run for run in self._runs if run.generation is not generation)

    def next_run(self) -> PrefillRun | None:
        """The run that `read_chunk` would read from."""
        return self._runs[0] if self._runs else None

    def is_waiting(self, generation: Generation) -> bool:
        """Whether a part of the generation is still to be read."""
        return any(run.generation is generation for run in self._runs)

    def read_chunk(self, run: PrefillRun) -> None:
        """Read on; once all is read, the sequences know the scores of their next token."""
        first, *others = run.sequences
        assert first.slot is not None, "a sequence has its slot before it is read"
        chunk = run.tokens[run.n_read : run.n_read + self._chunk]
        wants_hidden = is_contrastive(first)
        outcome = self._model.prefill(first.slot, chunk, run.n_read, wants_hidden=wants_hidden)
        run.n_read += len(chunk)
        if outcome.hidden is not None:
            first.context.append(outcome.hidden[0])
        if run.n_read < len(run.tokens):
            return
        for other in others:
            assert other.slot is not None, "a sequence has its slot before it is read"
            self._model.cache.copy_row(first.slot, other.slot, len(run.tokens))
        for each in run.sequences:
            each.next_logits = outcome.logits[0]
        self._runs.popleft()
