"""A real engine on a tiny random model, and a client of it for tests."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from api.neodim import adapter, renderer
from neodim_sampling.prompts import ChatMessage
from neodim_sampling.text.codec import TextCodec
from workers.contract.settings import Settings
from workers.contract.text_job import TextJob
from workers.contract.text_result import TextDelta, TextResult
from workers.engine.engine import Engine
from workers.engine.generation import Generation
from workers.engine.model_path import open_model
from workers.engine.prepare import Preparer
from workers.engine.results import make_result

TINY = Path(__file__).parents[2] / "data" / "tiny"
FAMILIES = sorted(path.name for path in TINY.iterdir() if path.is_dir())
PATIENCE_S = 60
SETTINGS = Settings()


def cases(family: str) -> list[dict[str, Any]]:
    """Recorded requests and answers of one family."""
    lines = (TINY / f"{family}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@cache
def parts(family: str) -> tuple[Any, TextCodec]:
    """A family's model and codec, loaded once."""
    model = AutoModelForCausalLM.from_pretrained(TINY / family, dtype=torch.float32).eval()
    return model, TextCodec(AutoTokenizer.from_pretrained(TINY / family))


class Ear:
    """Hears what a generation has to say."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.tokens: dict[int, list[int]] = {}
        self.error: Exception | None = None
        self.ended = threading.Event()
        self.n_heard = threading.Semaphore(0)

    def add(self, deltas: Sequence[TextDelta], n_generated: int) -> None:
        for delta in deltas:
            self.texts[delta.sequence] = self.texts.get(delta.sequence, "") + delta.text
            self.tokens.setdefault(delta.sequence, []).extend(delta.tokens)
        self.n_heard.release()

    def end(self, error: Exception | None) -> None:
        self.error = error
        self.ended.set()


class TinyEngine:
    """An engine that runs in its own thread, or step by step where `is_running` is false."""

    def __init__(
        self,
        family: str = "gpt2",
        *,
        slots: int = 8,
        max_length: int = 250,
        chunk: int = 16,
        is_running: bool = True,
        is_general: bool = False,
    ) -> None:
        model, self.codec = parts(family)
        self.model = open_model(copy.deepcopy(model), slots, max_length, is_general=is_general)
        self.preparer = Preparer(
            self.codec,
            _written_out,
            eos_ids=frozenset({model.config.eos_token_id}),
            n_vocab=min(self.codec.n_vocab, model.config.vocab_size),
            slots=slots,
            max_length=max_length,
        )
        self.died = threading.Event()
        self.engine = Engine(self.model, chunk, on_death=self.died.set)
        if is_running:
            self.engine.start()

    def submit(
        self, job: TextJob, made: Mapping[int, Sequence[int]] | None = None
    ) -> tuple[Generation, Ear]:
        ear = Ear()
        so_far = {
            index: TextDelta(sequence=index, text="", tokens=tuple(tokens))
            for index, tokens in (made or {}).items()
        }
        generation = self.preparer.prepare(job, so_far, ear)
        self.engine.submit(generation)
        return generation, ear

    def result(self, generation: Generation, ear: Ear) -> TextResult:
        assert ear.ended.wait(PATIENCE_S)
        if ear.error is not None:
            raise ear.error
        return make_result([generation], self.codec)

    def generate(self, **fields: Any) -> TextResult:
        return self.result(*self.submit(job(**fields)))

    def stop(self) -> None:
        self.engine.stop()


def _written_out(messages: Sequence[ChatMessage]) -> str:
    return "".join(f"{each.role}: {each.content}\n" for each in messages)


def job(**fields: Any) -> TextJob:
    """A job from Neodim fields; short and seeded unless they say otherwise."""
    body = {
        "prompt": "The old cat sees a red house near the river.",
        "generated_tokens_count": 12,
        "max_total_tokens": 128,
        "seed": 7,
        **fields,
    }
    return adapter.load(body, SETTINGS)


def answer(result: TextResult) -> dict[str, Any]:
    """The result as the Neodim protocol gives it."""
    return renderer.render_result(result)


@contextmanager
def running(family: str = "gpt2", **options: Any) -> Iterator[TinyEngine]:
    """An engine that is stopped afterwards."""
    engine = TinyEngine(family, **options)
    yield engine
    engine.stop()
