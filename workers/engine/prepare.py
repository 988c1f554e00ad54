"""From a canonical job to sequences that the engine can run: tokens, fitted prompt, resumed state.

Runs in the threads of the tasks, so that tokenising never holds up the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf

from neodim_sampling.errors import InvalidParams, PromptTooLong
from neodim_sampling.row import RowSettings, SamplingRow
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.constraint_words import resolve_constraints
from neodim_sampling.text.decoder import IncrementalDecoder
from neodim_sampling.text.fitting import FittedPrompt, fit_prompt
from neodim_sampling.text.stops import StopChecker
from workers.contract.text_job import TextJob
from workers.engine.generation import Generation, Sink
from workers.engine.sequence import Sequence


class Preparer:
    """Prepares jobs for one model.

    Args:
        codec: the model's text codec.
        eos_ids: tokens that end a text; may be empty.
        n_vocab: tokens that may be generated at all.
        slots: sequences that the engine runs at once.
        max_length: tokens that one sequence may have.
    """

    def __init__(
        self,
        codec: TextCodec,
        *,
        eos_ids: frozenset[int],
        n_vocab: int,
        slots: int,
        max_length: int,
    ) -> None:
        self._codec = codec
        self._eos_ids = eos_ids
        self._n_vocab = n_vocab
        self._slots = slots
        self._max_length = max_length

    def prepare(self, job: TextJob, made: Mapping[int, SequenceOf[int]], sink: Sink) -> Generation:
        """A generation of the job that goes on where an earlier attempt stopped.

        Args:
            job: what was asked for.
            made: tokens that earlier attempts made, by sequence; empty for the first.
            sink: who will hear of it.

        Raises:
            RequestRejected: the job cannot be done with this model.
        """
        if job.n_sequences > self._slots:
            raise InvalidParams("sequences_count", f"must be at most {self._slots} on this worker")
        fitted = fit_prompt(self._codec, job.prompt, job.max_new_tokens)
        self._check_length(job, fitted)
        settings = self._settings(job)
        sequences = [
            Sequence(
                SamplingRow(
                    settings=settings,
                    input_ids=list(fitted.input_ids),
                    n_preamble=fitted.n_preamble,
                    seed=job.seed,
                    sequence=index,
                ),
                IncrementalDecoder(self._codec, fitted.input_ids),
                StopChecker(job.stops),
            )
            for index in range(job.n_sequences)
        ]
        generation = Generation(job, fitted, sequences, sink)
        generation.replay(made)
        return generation

    def _check_length(self, job: TextJob, fitted: FittedPrompt) -> None:
        n_input = len(fitted.input_ids)
        if n_input + job.max_new_tokens > self._max_length:
            raise PromptTooLong(
                f"max_total_tokens: {n_input} input tokens and {job.max_new_tokens} generated ones "
                f"do not fit in the {self._max_length} tokens that this model can hold"
            )

    def _settings(self, job: TextJob) -> RowSettings:
        override = job.penalty.prompt if job.penalty is not None else None
        return RowSettings(
            warpers=job.warpers,
            penalty=job.penalty,
            penalty_prompt_ids=tuple(self._codec.encode(override)) if override else None,
            constraints=resolve_constraints(self._codec, job.constraints, self._eos_ids),
            n_vocab=self._n_vocab,
        )
