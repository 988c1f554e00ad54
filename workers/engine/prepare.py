"""From a canonical job to sequences that the engine can run: tokens, fitted prompt, resumed state.

Runs in the threads of the tasks, so that tokenising never holds up the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompt_items import ItemsPrompt
from neodim_sampling.prompts import ChatMessage, PlainPrompt
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.constraint_words import resolve_constraints, resolve_penalties
from neodim_sampling.text.decoder import IncrementalDecoder
from neodim_sampling.text.exclusions import ExcludedTexts
from neodim_sampling.text.fitting import FittedPrompt
from neodim_sampling.text.stops import StopChecker
from workers.contract.text_job import TextJob
from workers.contract.text_result import TextDelta
from workers.engine.attention_control import AttentionControl
from workers.engine.generation import Generation, Sink
from workers.engine.parts import JoinedSinks
from workers.engine.pictures import Eye, PlacedPicture
from workers.engine.prompt_fitter import PromptFitter
from workers.engine.questions import TextToRead
from workers.engine.sequence import Sequence as GrowingSequence
from workers.engine.telling import TokenTeller

PARTS_AT_ONCE = 4
"""Parts of a job that run at once where it has more sequences than the worker has rows: each
begins as soon as it finds room, and leaves some to others."""


class Preparer:
    """Prepares jobs for one model.

    Args:
        codec: the model's text codec.
        render_chat: puts a conversation into words; raises `TemplateRefused`.
        eos_ids: tokens that end a text; may be empty.
        n_vocab: tokens that may be generated at all.
        slots: sequences that the engine runs at once.
        max_length: tokens that one sequence may have.
        eye: sees pictures for the model; None = it reads none.
    """

    def __init__(
        self,
        codec: TextCodec,
        render_chat: Callable[[Sequence[ChatMessage]], str],
        *,
        eos_ids: frozenset[int],
        n_vocab: int,
        slots: int,
        max_length: int,
        eye: Eye | None = None,
    ) -> None:
        self.fitter = PromptFitter(
            codec, render_chat, eos_ids=eos_ids, max_length=max_length, eye=eye
        )
        """Reads the prompts."""
        self._codec = codec
        self._eos_ids = eos_ids
        self._n_vocab = n_vocab
        self._slots = slots

    def prepare(self, job: TextJob, made: Mapping[int, TextDelta], sink: Sink) -> Generation:
        """A generation of the job that goes on where an earlier attempt stopped.

        Args:
            job: what was asked for; no more sequences than run at once.
            made: what earlier attempts made, by sequence; empty for the first.
            sink: who will hear of it.

        Raises:
            RequestRejected: the job cannot be done with this model.
        """
        if job.n_sequences > self._slots:
            raise InvalidParams("sequences_count", f"must be at most {self._slots} on this worker")
        return self._part(job, self.fitter.fit(job), range(job.n_sequences), made, sink)

    def prepare_parts(
        self, job: TextJob, made: Mapping[int, TextDelta], sink: Sink
    ) -> list[Generation]:
        """The same in several generations, for a job with more sequences than run at once.

        Those of one generation wait for each other, so that only sequences that need not may be
        parted.
        """
        if job.n_sequences <= self._slots or not job.has_independent_sequences:
            return [self.prepare(job, made, sink)]
        size = max(1, self._slots // PARTS_AT_ONCE)
        starts = range(0, job.n_sequences, size)
        joined, read = JoinedSinks(sink), self.fitter.fit(job)
        for start in starts:
            indexes = range(start, min(start + size, job.n_sequences))
            own = {index: each for index, each in made.items() if index in indexes}
            joined.generations.append(self._part(job, read, indexes, own, joined.open()))
        return joined.generations

    def _part(
        self,
        job: TextJob,
        read: tuple[FittedPrompt, Sequence[PlacedPicture]],
        indexes: Sequence[int],
        made: Mapping[int, TextDelta],
        sink: Sink,
    ) -> Generation:
        """A generation of some of the job's sequences."""
        self._check_ids(job)
        fitted, pictures = read
        max_new_tokens = self.fitter.room(job, len(fitted.input_ids))
        settings = self._settings(job)
        teller = TokenTeller(self._codec, is_raw=job.is_raw)
        attention = job.prompt.attention if isinstance(job.prompt, ItemsPrompt) else None
        control = AttentionControl.of(fitted.factors, attention) if attention else None
        sequences = [
            GrowingSequence(
                SamplingRow(
                    settings=settings,
                    input_ids=list(fitted.input_ids),
                    n_preamble=fitted.n_preamble,
                    seed=job.seed,
                    sequence=index,
                ),
                IncrementalDecoder(teller.codec, fitted.text_ids),
                StopChecker(job.stops),
                ends_at_match=job.stops is not None and job.stops.ends_each,
                n_alternatives=(job.log_probs or 0) if job.needs_log_probs else None,
                pictures=pictures,
                teller=teller if job.tells_tokens or job.needs_log_probs else None,
                control=control,
                excluded=self._excluded(job, fitted.text_ids),
            )
            for index in indexes
        ]
        generation = Generation(job, fitted, max_new_tokens, sequences, sink, teller)
        generation.replay(made)
        return generation

    def prepare_reading(self, text: TextToRead, sink: Sink) -> Generation:
        """A generation that reads a text and makes nothing behind it.

        Args:
            text: its tokens fit in a row.
            sink: who will hear of its end.
        """
        # One that is only read is to the engine what a text job is that wants no token.
        job = TextJob(model="", prompt=PlainPrompt(ids=text.ids), max_new_tokens=0, seed=0)
        fitted = FittedPrompt(text.ids, 0, "", "", len(text.ids), len(text.ids), len(text.ids))
        settings = RowSettings(
            warpers=job.warpers, constraints=TokenConstraints(), n_vocab=self._n_vocab
        )
        sequence = GrowingSequence(
            SamplingRow(settings=settings, input_ids=list(text.ids), n_preamble=0, seed=0),
            IncrementalDecoder(self._codec, ()),
            StopChecker(None),
            pictures=text.pictures,
            control=AttentionControl.of(text.factors, text.attention),
        )
        teller = TokenTeller(self._codec, is_raw=False)
        return Generation(job, fitted, 0, [sequence], sink, teller, text.question)

    def _excluded(self, job: TextJob, input_ids: Sequence[int]) -> ExcludedTexts | None:
        limits = job.constraints
        if not limits.exclusions or limits.is_exclusion_first_only:
            return None
        return ExcludedTexts(self._codec, limits.exclusions, input_ids)

    def _check_ids(self, job: TextJob) -> None:
        """Refuse biases of tokens that are not in the vocabulary."""
        ids = [*(token for token, _ in job.adjustments.logit_bias), *job.constraints.banned_ids]
        if ids and max(ids) >= self._n_vocab:
            problem = f"there is no token {max(ids)}; ids are below {self._n_vocab}"
            raise InvalidParams("logit_bias", problem)

    def _settings(self, job: TextJob) -> RowSettings:
        override = job.penalty.prompt if job.penalty is not None else None
        return RowSettings(
            warpers=job.warpers,
            penalty=job.penalty,
            adjustments=job.adjustments,
            penalty_tokens=resolve_penalties(self._codec, job.adjustments, self._eos_ids),
            penalty_prompt_ids=tuple(self._codec.encode(override)) if override else None,
            constraints=resolve_constraints(self._codec, job.constraints, self._eos_ids),
            n_vocab=self._n_vocab,
        )
