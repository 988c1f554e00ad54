"""What has to be read before tokens can be chosen: prompts, and the newest tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as SequenceOf
from itertools import accumulate
from math import isnan
from typing import Protocol, TypeAlias

from torch import Tensor

from workers.contract.errors import EngineFailure
from workers.engine.generation import Generation
from workers.engine.likelihood import Likelihood, prompt_likelihoods
from workers.engine.pictures import insets_of
from workers.engine.sequence import Scores, Sequence
from workers.engine.text_model import Run, TextModel

Score: TypeAlias = Callable[[Tensor], Tensor]
"""The model's scores [B, V] behind last hidden states [B, H]."""

LayerStates: TypeAlias = Mapping[int, Tensor]
"""States [T, H] by layer."""


class Reading(Protocol):
    """A part of what a step reads, of one generation."""

    generation: Generation

    def runs(self) -> list[Run]:
        """What to read."""
        ...

    def examine(
        self, hidden: SequenceOf[Tensor], states: SequenceOf[LayerStates], score: Score
    ) -> None:
        """Find out from each run's states what takes computing; once more does no harm.

        Args:
            hidden: those behind the final norm.
            states: those of the layers that each run asks for.
            score: the model's scores behind last hidden states.

        Raises:
            Exception: it cannot be found out; nothing of the step was taken yet.
        """
        ...

    def take(self, scores: SequenceOf[Scores | None], hidden: SequenceOf[Tensor]) -> None:
        """Hear what reading each run gave: scores behind it if it needs them, and states."""
        ...


class NewestTokens:
    """The tokens that a generation's sequences got last."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._sequences = [each for each in generation.growing if each.scores is None]

    def runs(self) -> list[Run]:
        """One token for each sequence."""
        return [
            Run(each.held_slot, each.n_cached, each.row.generated[-1:]) for each in self._sequences
        ]

    def examine(
        self, hidden: SequenceOf[Tensor], states: SequenceOf[LayerStates], score: Score
    ) -> None:
        """Nothing."""

    def take(self, scores: SequenceOf[Scores | None], hidden: SequenceOf[Tensor]) -> None:
        """Each sequence knows the scores of its next token."""
        for sequence, each in zip(self._sequences, scores, strict=True):
            sequence.scores = each
            sequence.n_held += 1


class PromptReading:
    """A text to read in chunks, and the sequences that begin with it.

    Args:
        generation: whose it is.
        sequences: the first one's row is read into; the others get copies.
        tokens: the text.
    """

    def __init__(
        self, generation: Generation, sequences: list[Sequence], tokens: list[int]
    ) -> None:
        self.generation = generation
        self.sequences = sequences
        self.tokens = tokens
        self.n_read = 0
        self.chunk = 0
        self._found: list[Likelihood] = []
        self._pool = generation.pool

    @property
    def n_left(self) -> int:
        """Tokens that are still to be read."""
        return len(self.tokens) - self.n_read

    def runs(self) -> list[Run]:
        """The next `chunk` tokens."""
        stop = self.n_read + self.chunk
        needs_scores = stop == len(self.tokens) and self.generation.max_new_tokens > 0
        first, pool = self.sequences[0], self.generation.pool
        run = Run(
            first.held_slot,
            self.n_read,
            self.tokens[self.n_read : stop],
            needs_scores=needs_scores,
            insets=insets_of(first.pictures, self.n_read, stop),
            layers=() if pool is None else pool.layers,
        )
        return [run]

    def examine(
        self, hidden: SequenceOf[Tensor], states: SequenceOf[LayerStates], score: Score
    ) -> None:
        """See what this chunk tells of what is asked of the prompt.

        Raises:
            EngineFailure: the model's scores are not numbers.
        """
        self._found, self._pool = [], self.generation.pool
        if self.generation.is_prompt_untold and self.sequences[0] is self.generation.to_read[0]:
            self._found = self._likelihoods(hidden[0], score)
        if self._pool is not None:
            self._pool = self._pool.joined(states[0])
        if any(isnan(each.log_prob) for each in self._found):
            raise EngineFailure("the model failed: its scores are not numbers")

    def take(self, scores: SequenceOf[Scores | None], hidden: SequenceOf[Tensor]) -> None:
        """The text is read that far; behind its end, all sequences know what may come."""
        self.generation.prompt_likelihoods += self._found
        self.generation.pool = self._pool
        self.n_read += self.chunk
        self.sequences[0].n_held = self.n_read
        if self.generation.is_contrastive:
            self.sequences[0].context.append(hidden[0])
        if self.n_left == 0:
            for sequence in self.sequences:
                sequence.scores = scores[0]

    def _likelihoods(self, hidden: Tensor, score: Score) -> list[Likelihood]:
        question, n_vocab = self.generation.question, self.sequences[0].row.settings.n_vocab
        if question.first_told is None:
            return []
        # The state of each token tells of the next one.
        first = max(question.first_told, self.n_read + 1)
        stop = min(self.n_read + self.chunk + 1, len(self.generation.fitted.input_ids))
        places = slice(first - 1 - self.n_read, max(first, stop) - 1 - self.n_read)
        return prompt_likelihoods(
            score, hidden[places], self.tokens[first:stop], question.n_top, n_vocab
        )


def read(model: TextModel, readings: SequenceOf[Reading]) -> None:
    """Read them all in one step of the model."""
    runs = [reading.runs() for reading in readings]
    outcome = model.read([run for each in runs for run in each])
    scores = [None if place is None else Scores(outcome.logits, place) for place in outcome.places]
    ends = list(accumulate(map(len, runs)))
    parts = [slice(end - len(each), end) for end, each in zip(ends, runs, strict=True)]
    # All that may fail comes first: a step that failed is tried again with fewer readings.
    for reading, part in zip(readings, parts, strict=True):
        reading.examine(outcome.hidden[part], outcome.states[part], model.score)
    for reading, part in zip(readings, parts, strict=True):
        reading.take(scores[part], outcome.hidden[part])
