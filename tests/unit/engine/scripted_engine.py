"""An engine over a model that computes nothing: its next token is a sum over the row's text.

So a row that holds another text than it should, or a token that goes to another job, shows as a
wrong token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import torch

from neodim_sampling.parameters import StopParams, WarperParams
from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.prompts import PlainPrompt
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints
from neodim_sampling.text.fitting import FittedPrompt
from neodim_sampling.text.stops import StopChecker
from workers.contract.text_job import TextJob
from workers.contract.text_result import TextDelta, TokenScore
from workers.engine.engine import Engine
from workers.engine.generation import Generation
from workers.engine.sequence import Sequence as TextSequence
from workers.engine.telling import TokenTeller
from workers.engine.text_model import Outcome, Run

N_VOCAB = 31
POISON = 30
"""A prompt with this token cannot be read."""
NONSENSE = 29
"""Behind a text with this token, no score is a number."""


def scores_behind(text: Sequence[int]) -> torch.Tensor:
    """[V] scores of the model behind a text: one token is best, no two are alike; leave alone."""
    return _row(NONSENSE if NONSENSE in text else (sum(text) * 7 + len(text) * 3) % NONSENSE)


@cache
def _row(best: int) -> torch.Tensor:
    scores = torch.arange(N_VOCAB) * -0.01
    scores[best] = 9.0
    return scores if best != NONSENSE else scores * torch.nan


class NoFactors:
    """Attention that nobody controls."""

    def control(self, slot: int, control: None) -> None:
        pass


class ScriptedCache:
    """Rows that hold tokens."""

    factors = NoFactors()

    def __init__(self, slots: int) -> None:
        self.rows: list[list[int]] = [[] for _ in range(slots)]

    def copy_row(self, source: int, target: int, length: int) -> None:
        self.rows[target] = self.rows[source][:length]

    def clear_row(self, slot: int) -> None:
        self.rows[slot] = []


class ScriptedModel:
    """What the engine needs of a `TextModel`."""

    pads_prompts = False

    def __init__(self, slots: int, max_length: int) -> None:
        self.slots = slots
        self.max_length = max_length
        self.device = torch.device("cpu")
        self.cache = ScriptedCache(slots)
        self.n_reads = 0

    def score(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden

    def read(self, runs: Sequence[Run]) -> Outcome:
        assert len({run.slot for run in runs}) == len(runs), "two runs for one row"
        if any(POISON in run.tokens for run in runs):
            raise ZeroDivisionError
        self.n_reads += 1
        scored: list[list[int]] = []
        places: list[int | None] = []
        for run in runs:
            row = self.cache.rows[run.slot]
            assert run.start <= len(row), "a row is read on behind its end"
            assert run.stop <= self.max_length, "a row is full"
            row[run.start :] = run.tokens
            places.append(len(scored) if run.needs_scores else None)
            if run.needs_scores:
                scored.append(row)
        logits = torch.stack([torch.zeros(N_VOCAB), *map(scores_behind, scored)])[1:]
        return Outcome(logits, places, [self._hidden(run) for run in runs])

    def _hidden(self, run: Run) -> torch.Tensor:
        """States that are the scores."""
        row = self.cache.rows[run.slot]
        return torch.stack([scores_behind(row[: n + 1]) for n in range(run.start, run.stop)])


class Letters:
    """A codec by which a token is a letter."""

    ignored_ids = frozenset[int]()
    fallback_bytes: Mapping[int, int] = {}

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(map(letter, ids))

    def piece(self, token: int) -> str:
        return letter(token)


class Speller:
    """Spells a letter for each token."""

    codec = Letters()

    def __init__(self) -> None:
        self.stable_text = ""

    def push(self, token: int) -> None:
        self.stable_text += letter(token)

    def final_text(self) -> str:
        return self.stable_text

    def readable_rest(self) -> str:
        return ""


def letter(token: int) -> str:
    """How a token is spelt."""
    return chr(ord("A") + token)


@dataclass(eq=False)
class Request:
    """A request and what is heard of it.

    Args:
        log_probs: alternatives to tell; None = no log-probabilities.
        echo: whether the prompt's tokens are told as well.
        frequency_penalty: 0 = off.
        stop: a token that ends each text; None = none does.
    """

    prompt: list[int]
    n_tokens: int
    n_sequences: int = 1
    log_probs: int | None = None
    echo: bool = False
    frequency_penalty: float = 0.0
    stop: int | None = None
    made: dict[int, list[int]] = field(default_factory=dict)
    told: dict[int, list[TokenScore]] = field(default_factory=dict)
    generation: Generation | None = None
    error: Exception | None = None
    n_ends: int = 0

    def add(self, deltas: Sequence[TextDelta], n_generated: int) -> None:
        assert self.n_ends == 0, "something came behind the end"
        for delta in deltas:
            self.made.setdefault(delta.sequence, []).extend(delta.tokens)
            self.told.setdefault(delta.sequence, []).extend(delta.scores)

    def end(self, error: Exception | None) -> None:
        self.error = error
        self.n_ends += 1

    @property
    def is_read(self) -> bool:
        """Whether the model has to read its prompt."""
        tells_prompt = self.echo and self.log_probs is not None and len(self.prompt) > 1
        return self.n_tokens > 0 or tells_prompt

    @cached_property
    def expected(self) -> list[int]:
        """Tokens of every sequence: all are greedy, so all are alike."""
        made: list[int] = []
        while len(made) < self.n_tokens and self.stop not in made:
            scores = scores_behind([*self.prompt, *made]).clone()
            for token in made:
                scores[token] -= self.frequency_penalty
            made.append(int(scores.argmax()))
        return made

    @cached_property
    def expected_log_probs(self) -> list[float]:
        """Of the prompt's tokens behind the first, and of all that are expected."""
        text = [*self.prompt, *self.expected]
        return [
            float(scores_behind(text[:n]).log_softmax(-1)[text[n]]) for n in range(1, len(text))
        ]

    @property
    def job(self) -> TextJob:
        """What it asks for."""
        stop = None if self.stop is None else letter(self.stop)
        return TextJob(
            model="scripted",
            prompt=PlainPrompt(ids=tuple(self.prompt), echo=self.echo),
            max_new_tokens=self.n_tokens,
            n_sequences=self.n_sequences,
            seed=1,
            log_probs=self.log_probs,
            stops=None if stop is None else StopParams(strings=(stop,), ends_each=True),
        )


class ScriptedEngine:
    """An engine that moves when it is told to."""

    def __init__(self, slots: int, max_length: int = 64, chunk: int = 16) -> None:
        self.model = ScriptedModel(slots, max_length)
        # Stands in for a `TextModel`, whose constructor would want a model of transformers.
        self.engine = Engine(self.model, chunk, on_death=lambda: None)  # type: ignore[arg-type]

    def submit(self, request: Request) -> Generation:
        settings = RowSettings(
            warpers=WarperParams(top_k=1),
            adjustments=AdjustmentParams(frequency_penalty=request.frequency_penalty),
            constraints=TokenConstraints(),
            n_vocab=N_VOCAB,
        )
        job = request.job
        ids = tuple(request.prompt)
        fitted = FittedPrompt(ids, 0, "", "", len(ids), len(ids), len(ids))
        # Spells tokens for those who tell of them; a real codec would want a tokenizer.
        letters: Any = Speller.codec
        teller = TokenTeller(letters, is_raw=False)
        sequences = [
            TextSequence(
                SamplingRow(
                    settings=settings, input_ids=list(ids), n_preamble=0, seed=1, sequence=index
                ),
                # Stands in for an `IncrementalDecoder`, which would want a tokenizer.
                Speller(),  # type: ignore[arg-type]
                StopChecker(job.stops),
                ends_at_match=job.stops is not None,
                n_alternatives=job.log_probs,
                teller=teller if job.tells_tokens else None,
            )
            for index in range(request.n_sequences)
        ]
        generation = Generation(job, fitted, request.n_tokens, sequences, request, teller)
        request.generation = generation
        self.engine.submit(generation)
        return generation
