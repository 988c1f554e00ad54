"""An engine over a model that computes nothing: its next token is a sum over the row's text.

So a row that holds another text than it should, or a token that goes to another job, shows as a
wrong token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from neodim_sampling.parameters import PreamblePrompt, WarperParams
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints
from neodim_sampling.text.fitting import FittedPrompt
from neodim_sampling.text.stops import StopChecker
from workers.contract.text_job import TextDelta, TextJob
from workers.engine.engine import Engine
from workers.engine.generation import Generation
from workers.engine.sequence import Sequence as TextSequence
from workers.engine.text_model import Outcome, Run

N_VOCAB = 31
POISON = 30
"""A prompt with this token cannot be read."""
NONSENSE = 29
"""Behind a text with this token, no score is a number."""


def next_token(text: Sequence[int]) -> int:
    """What the model says behind a text."""
    return (sum(text) * 7 + len(text) * 3) % NONSENSE


class ScriptedCache:
    """Rows that hold tokens."""

    def __init__(self, slots: int) -> None:
        self.rows: list[list[int]] = [[] for _ in range(slots)]

    def copy_row(self, source: int, target: int, length: int) -> None:
        self.rows[target] = self.rows[source][:length]

    def clear_row(self, slot: int) -> None:
        self.rows[slot] = []

    def bias_keys(self, slot: int, bias: object) -> None:
        pass


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
        raise AssertionError("no scripted request asks for its prompt's likelihoods")

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
        logits = torch.zeros(len(scored), N_VOCAB)
        for place, text in enumerate(scored):
            logits[place, next_token(text)] = 9.0
            if NONSENSE in text:
                logits[place] = torch.nan
        return Outcome(logits, places, [torch.zeros(len(run.tokens), 1) for run in runs])


class Speller:
    """Spells nothing, as nobody looks at the text."""

    stable_text = ""

    def push(self, token: int) -> None:
        pass

    def final_text(self) -> str:
        return ""


@dataclass(eq=False)
class Request:
    """A request and what is heard of it."""

    prompt: list[int]
    n_tokens: int
    n_sequences: int = 1
    made: dict[int, list[int]] = field(default_factory=dict)
    error: Exception | None = None
    n_ends: int = 0

    def add(self, deltas: Sequence[TextDelta], n_generated: int) -> None:
        assert self.n_ends == 0, "something came behind the end"
        for delta in deltas:
            self.made.setdefault(delta.sequence, []).extend(delta.tokens)

    def end(self, error: Exception | None) -> None:
        self.error = error
        self.n_ends += 1

    @property
    def expected(self) -> list[int]:
        """Tokens of every sequence: all are greedy, so all are alike."""
        text = list(self.prompt)
        while len(text) < len(self.prompt) + self.n_tokens:
            text.append(next_token(text))
        return text[len(self.prompt) :]


class ScriptedEngine:
    """An engine that moves when it is told to."""

    def __init__(self, slots: int, max_length: int = 64, chunk: int = 16) -> None:
        self.model = ScriptedModel(slots, max_length)
        # Stands in for a `TextModel`, whose constructor would want a model of transformers.
        self.engine = Engine(self.model, chunk, on_death=lambda: None)  # type: ignore[arg-type]

    def submit(self, request: Request) -> Generation:
        settings = RowSettings(
            warpers=WarperParams(top_k=1), constraints=TokenConstraints(), n_vocab=N_VOCAB
        )
        job = TextJob(
            model="scripted",
            prompt=PreamblePrompt(preamble="", text="tokens", max_total_tokens=1),
            max_new_tokens=request.n_tokens,
            n_sequences=request.n_sequences,
            seed=1,
        )
        ids = tuple(request.prompt)
        fitted = FittedPrompt(ids, 0, "", "", len(ids), len(ids), len(ids))
        sequences = [
            TextSequence(
                SamplingRow(
                    settings=settings, input_ids=list(ids), n_preamble=0, seed=1, sequence=index
                ),
                # Stands in for an `IncrementalDecoder`, which would want a tokenizer.
                Speller(),  # type: ignore[arg-type]
                StopChecker(None),
            )
            for index in range(request.n_sequences)
        ]
        generation = Generation(job, fitted, request.n_tokens, sequences, request)
        self.engine.submit(generation)
        return generation
