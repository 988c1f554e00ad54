"""Reading prompts: in chunks between the steps of running rows, short ones together."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from torch import Tensor

from workers.engine.contrastive import is_contrastive
from workers.engine.generation import Generation
from workers.engine.sequence import Sequence
from workers.engine.text_model import TextModel


@dataclass(slots=True, eq=False)
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
        chunk: most tokens of one forward pass, padding included.
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

    def next_runs(self) -> list[PrefillRun]:
        """The runs to read from next: the first in line, and those behind it that fit beside it.

        Short prompts are read together, as one pass over the weights costs more than they do.
        """
        chosen: list[PrefillRun] = []
        longest = 0
        for run in self._runs:
            longest = max(longest, min(len(run.tokens) - run.n_read, self._chunk))
            fits = longest * (len(chosen) + 1) <= self._chunk
            end = max(each.n_read for each in (*chosen, run)) + longest
            if chosen and not (fits and end <= self._model.max_length):
                break
            chosen.append(run)
        return chosen

    def is_waiting(self, generation: Generation) -> bool:
        """Whether a part of the generation is still to be read."""
        return any(run.generation is generation for run in self._runs)

    def read(self, runs: list[PrefillRun]) -> None:
        """Read on in these; who is read to the end knows the scores of its next token."""
        parts = [run.tokens[run.n_read : run.n_read + self._chunk] for run in runs]
        outcome = self._model.prefill(
            [_slot(run.sequences[0]) for run in runs], parts, [run.n_read for run in runs]
        )
        hidden = outcome.hidden.split([len(part) for part in parts])
        for run, states, logits in zip(runs, hidden, outcome.logits, strict=True):
            run.n_read += len(states)
            if is_contrastive(run.sequences[0]):
                run.sequences[0].context.append(states)
            if run.n_read == len(run.tokens):
                self._finish(run, logits)

    def _finish(self, run: PrefillRun, logits: Tensor) -> None:
        first, *others = run.sequences
        for other in others:
            self._model.cache.copy_row(_slot(first), _slot(other), len(run.tokens))
        for each in run.sequences:
            each.next_logits = logits
        self._runs.remove(run)


def _slot(sequence: Sequence) -> int:
    assert sequence.slot is not None, "a sequence has its slot before it is read"
    return sequence.slot
