"""A job inside the engine: its sequences, which advance together, and who hears of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from functools import cached_property
from typing import Protocol

from neodim_sampling.text.fitting import FittedPrompt
from workers.contract.text_job import TextJob
from workers.contract.text_result import TextDelta, TokenScore
from workers.engine.gpu_memory import MemoryWatch
from workers.engine.likelihood import Likelihood
from workers.engine.questions import Question
from workers.engine.sequence import Sequence
from workers.engine.telling import TokenTeller


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
        max_new_tokens: tokens that each sequence may get.
        sequences: one for each text asked for.
        sink: who hears of it.
        teller: tells of the prompt's tokens where that is asked for.
        question: what is to be found out from the prompt; None = what the job tells of it.
    """

    def __init__(
        self,
        job: TextJob,
        fitted: FittedPrompt,
        max_new_tokens: int,
        sequences: list[Sequence],
        sink: Sink,
        teller: TokenTeller,
        question: Question | None = None,
    ) -> None:
        self.job = job
        self.fitted = fitted
        self.max_new_tokens = max_new_tokens
        self.question = _question_of(job) if question is None else question
        self.prompt_likelihoods: list[Likelihood] = []
        """Of the prompt's tokens from the question's first on."""
        self.pool = self.question.pool
        """What has seen the states of the tokens read so far."""
        self.sequences = sequences
        self._by_index = {each.row.sequence: each for each in sequences}
        self.memory = MemoryWatch()
        self.is_partial = False
        self._sink = sink
        self._teller = teller
        self._echoes_due = {each.row.sequence for each in sequences} if job.echoes else set()
        self._cancelled = threading.Event()

    @property
    def n_steps(self) -> int:
        """Tokens that the longest sequence has."""
        return max(len(sequence.row.generated) for sequence in self.sequences)

    @property
    def is_finished(self) -> bool:
        """Whether nothing more has to be found out."""
        if self.is_prompt_untold:
            return False
        if self.n_steps >= self.max_new_tokens:
            return True
        return all(sequence.is_done for sequence in self.sequences)

    @property
    def is_prompt_untold(self) -> bool:
        """Whether something that is asked of the prompt is not known yet."""
        n_tokens, first = len(self.fitted.input_ids), self.question.first_told
        if self.pool is not None and self.pool.n_seen < n_tokens:
            return True
        return first is not None and len(self.prompt_likelihoods) < n_tokens - first

    @property
    def is_only_read(self) -> bool:
        """Whether it wants no token of its own."""
        return self.max_new_tokens == 0

    @property
    def n_unasked(self) -> int | None:
        """Tokens at the beginning whose states nobody needs; None = of all but the last."""
        if self.is_contrastive or self.pool is not None:
            return 0
        first = self.question.first_told
        return first - 1 if first is not None and self.is_prompt_untold else None

    @cached_property
    def echo(self) -> tuple[TokenScore, ...] | None:
        """The prompt's tokens, where they are asked for; to be looked at once all are known.

        Pictures are not told of.
        """
        if not self.job.echoes:
            return None
        ids, known = self.fitted.input_ids, [None, *self.prompt_likelihoods]
        places = self.fitted.text_places[self.fitted.n_start :]
        return self._teller.tell_all(
            [ids[place] for place in places],
            [known[place] for place in places if place < len(known)],
        )

    @property
    def to_read(self) -> list[Sequence]:
        """Sequences that need a row to be read into."""
        return self.growing or self.sequences[: int(self.is_prompt_untold)]

    @property
    def growing(self) -> list[Sequence]:
        """Sequences that get a token in the next step.

        One with a stop string goes on until all have one (seed 000, `trimmed_tail`), unless the
        job says otherwise; one that ended by itself does not.
        """
        return [sequence for sequence in self.sequences if not sequence.has_ended]

    @property
    def is_contrastive(self) -> bool:
        """Whether its sequences are generated by contrastive search."""
        return self.sequences[0].is_contrastive

    @property
    def is_cancelled(self) -> bool:
        """Whether it was asked to end."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ask it to end at the next step; any thread may."""
        self._cancelled.set()

    def accept(self, tokens: Mapping[int, int]) -> None:
        """Give one step's tokens, by the sequence's number in its job, to the sequences.

        Raises:
            StopPatternTimeout: a regular expression took too long on a text.
        """
        for index, token in tokens.items():
            self._by_index[index].accept(token)
        self.memory.sample()

    def replay(self, made: Mapping[int, TextDelta]) -> None:
        """Take what an earlier attempt made and published, step by step.

        Raises:
            StopPatternTimeout: a regular expression took too long on a text.
        """
        tokens = {index: each.tokens for index, each in made.items()}
        for step in range(max(map(len, tokens.values()), default=0)):
            self.accept({index: each[step] for index, each in tokens.items() if step < len(each)})
        for index, each in made.items():
            self._by_index[index].told[:] = each.scores
            if each.echo:
                self._echoes_due.discard(index)
        for sequence in self.sequences:
            sequence.take_delta(is_last=False)

    def publish(self, *, is_last: bool) -> None:
        """Tell the sink what the sequences gained."""
        deltas = [
            delta
            for sequence in self.sequences
            for delta in (self._echo_of(sequence), sequence.take_delta(is_last=is_last))
            if delta is not None
        ]
        n_generated = sum(len(sequence.row.generated) for sequence in self.sequences)
        self._sink.add(deltas, n_generated)

    def _echo_of(self, sequence: Sequence) -> TextDelta | None:
        """The prompt's tokens, once, where a text begins with them."""
        index = sequence.row.sequence
        if index not in self._echoes_due or self.is_prompt_untold or not self.echo:
            return None
        self._echoes_due.remove(index)
        return TextDelta(sequence=index, text="", tokens=(), echo=self.echo)

    def end(self, error: Exception | None = None) -> None:
        """Tell the sink that this is all."""
        self.is_partial = error is None and not self.is_finished
        if error is None:
            self.publish(is_last=True)
        self._sink.end(error)


def _question_of(job: TextJob) -> Question:
    """What a job tells of its prompt."""
    if job.echoes and job.log_probs is not None:
        return Question(first_told=1, n_top=job.log_probs)
    return Question()
