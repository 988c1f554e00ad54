"""A job inside the engine: its sequences, which advance together, and who hears of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from typing import Protocol

from neodim_sampling.text.fitting import FittedPrompt
from workers.contract.text_job import TextDelta, TextJob
from workers.engine.gpu_memory import MemoryWatch
from workers.engine.sequence import Sequence


class Sink(Protocol):
    """Who hears of a generation; called by the engine's thread, so it must be quick."""

    def add(self, deltas: SequenceOf[TextDelta], n_generated: int) -> None:
        """Take what all sequences gained in one step, and the tokens made so far in all."""
        ...

    def end(self, error: Exception | None) -> None:
        """Hear that nothing more will come: finished, or cancelled, or failed by an error."""
        ...


class Generation:
    """One job's sequences, in lockstep: each step gives a token to every one that still grows.

    Args:
        job: what was asked for.
        fitted: the prompt as the model reads it.
        sequences: one for each text asked for.
        sink: who hears of it.
    """

    def __init__(
        self, job: TextJob, fitted: FittedPrompt, sequences: list[Sequence], sink: Sink
    ) -> None:
        self.job = job
        self.fitted = fitted
        self.sequences = sequences
        self.memory = MemoryWatch()
        self.is_partial = False
        self._sink = sink
        self._cancelled = threading.Event()

    @property
    def n_steps(self) -> int:
        """Tokens that the longest sequence has."""
        return max(len(sequence.row.generated) for sequence in self.sequences)

    @property
    def is_finished(self) -> bool:
        """Whether no sequence needs another token."""
        if self.n_steps >= self.job.max_new_tokens:
            return True
        return all(sequence.is_done for sequence in self.sequences)

    @property
    def growing(self) -> list[Sequence]:
        """Sequences that get a token in the next step.

        One with a stop string goes on until all have one (seed 000, `trimmed_tail`); one that
        ended by itself does not.
        """
        return [sequence for sequence in self.sequences if not sequence.is_end_of_text]

    @property
    def is_cancelled(self) -> bool:
        """Whether it was asked to end."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ask it to end at the next step; any thread may."""
        self._cancelled.set()

    def accept(self, tokens: Mapping[int, int]) -> None:
        """Give one step's tokens, by sequence index, to the sequences.

        Raises:
            StopPatternTimeout: a regular expression took too long on a text.
        """
        for index, token in tokens.items():
            self.sequences[index].accept(token)
        self.memory.sample()

    def replay(self, tokens: Mapping[int, SequenceOf[int]]) -> None:
        """Take the tokens that an earlier attempt made and published, step by step.

        Raises:
            StopPatternTimeout: a regular expression took too long on a text.
        """
        for step in range(max(map(len, tokens.values()), default=0)):
            self.accept({index: made[step] for index, made in tokens.items() if step < len(made)})
        for sequence in self.sequences:
            sequence.take_delta(is_last=False)

    def publish(self, *, is_last: bool) -> None:
        """Tell the sink what the sequences gained."""
        deltas = [sequence.take_delta(is_last=is_last) for sequence in self.sequences]
        n_generated = sum(len(sequence.row.generated) for sequence in self.sequences)
        self._sink.add([delta for delta in deltas if delta is not None], n_generated)

    def end(self, error: Exception | None = None) -> None:
        """Tell the sink that this is all."""
        self.is_partial = error is None and not self.is_finished
        if error is None:
            self.publish(is_last=True)
        self._sink.end(error)
