"""A worker without a model: it claims real jobs and "generates" what the prompt tells it to.

The prompt, or a conversation's last message, "fail CODE" fails the job with that code, "break CODE"
does so behind its first token; "hold" generates one token and goes on until the job is cancelled;
"end" ends with a special token where the job is raw; any other makes the tokens "0 ", "1 ", ...
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

from scripted_reading import reading_result_of

from neodim_sampling.prompt_items import ItemsPrompt, PromptItem, TextItem
from neodim_sampling.prompts import ChatPrompt
from workers.contract.attempts import Attempt, AttemptStore, Progress
from workers.contract.fleet import Fleet, WorkerCard, WorkerState
from workers.contract.reading_job import EmbeddingJob, ReadingJob
from workers.contract.redis_client import connect
from workers.contract.text_job import TextJob
from workers.contract.text_result import (
    Alternative,
    FinishReason,
    PenaltyReport,
    PromptReport,
    SequenceResult,
    TextDelta,
    TextResult,
    TokenScore,
)
from workers.contract.tokenizer_store import TokenizerFile, TokenizerStore

MODEL = "scripted"
TOKENIZER = Path(__file__).parents[1] / "data" / "tiny" / "llama" / "tokenizer.json"
DEFAULT_TOKENS = 4
END = "<|end|>"


class ScriptedWorker:
    """Runs in threads within a `with` block.

    Args:
        redis_url: where the jobs are.
        max_length: what its card says.
        slots: what its card says.
        hands: jobs that it does at a time.
        reads_pictures: what its card says.
    """

    def __init__(
        self,
        redis_url: str,
        *,
        max_length: int = 512,
        slots: int = 4,
        hands: int = 1,
        reads_pictures: bool = False,
    ) -> None:
        client = connect(redis_url)
        self._fleet = Fleet(client)
        self._attempts = AttemptStore(
            client, worker="scripted-1", lease_s=30, result_ttl_s=60, max_attempts=3
        )
        self._card = WorkerCard(
            name="scripted-1",
            model=MODEL,
            state=WorkerState.READY,
            slots=slots,
            max_length=max_length,
            host="nowhere",
            pid=1,
            started_ms=0,
            reads_pictures=reads_pictures,
        )
        self._tokenizers = TokenizerStore(client)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(hands)]

    def __enter__(self) -> ScriptedWorker:
        self._tokenizers.keep(MODEL, TokenizerFile.of(TOKENIZER.read_text()))
        self._fleet.report(self._card)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            attempt = self._attempts.claim(MODEL)
            if attempt is None:
                time.sleep(0.005)
            else:
                self._do(attempt)

    def _do(self, attempt: Attempt) -> None:
        job = attempt.job()
        order, _, code = script_of(job).partition(" ")
        if order == "fail":
            self._attempts.fail(attempt, code, "it was to fail")
            return
        if not isinstance(job, TextJob):
            self._attempts.succeed(attempt, reading_result_of(job))
            return
        n_done = n_batches = 0
        is_cancelled = attempt.is_cancelled
        while n_done < n_tokens_of(job) and not is_cancelled and not self._stop.is_set():
            is_holding = order == "hold" and n_done == 1
            deltas = [] if is_holding else self._deltas(job, n_done)
            n_done += not is_holding
            n_batches += 1
            news = Progress(
                attempt=attempt,
                batch=n_batches,
                n_generated=n_done * job.n_sequences,
                deltas=tuple(deltas),
            )
            is_cancelled = self._attempts.publish([news]) == ["1"]
            if order == "break":
                self._attempts.fail(attempt, code, "it was to break")
                return
            time.sleep(0.005 * is_holding)
        self._attempts.succeed(attempt, result_of(job, n_done, is_partial=is_cancelled))

    def _deltas(self, job: TextJob, step: int) -> list[TextDelta]:
        text = _text_of(step, n_tokens_of(job))
        scores = (score_of(job, step),) if job.tells_tokens else ()
        echo = (echo_of(job) or ()) if step == 0 else ()
        if scores and scores[0].is_special:
            text = scores[0].text
        return [
            TextDelta(sequence=each, text=text, tokens=(step,), scores=scores, echo=echo)
            for each in range(job.n_sequences)
        ]


def script_of(job: TextJob | ReadingJob) -> str:
    """What a job tells its worker to do."""
    if isinstance(job, EmbeddingJob):
        return ""
    if isinstance(job.prompt, ChatPrompt):
        return job.prompt.messages[-1].content
    if isinstance(job.prompt, ItemsPrompt):
        return "".join(each.text for each in job.prompt.items if isinstance(each, TextItem))
    return job.prompt.text or ""


def n_tokens_of(job: TextJob) -> int:
    """How many tokens a job gets: of those that name no number, a few."""
    return DEFAULT_TOKENS if job.max_new_tokens is None else job.max_new_tokens


def score_of(job: TextJob, step: int) -> TokenScore:
    """What is told of a token: the n-th has a log-probability of -n."""
    is_end = job.is_raw and script_of(job) == "end" and step == n_tokens_of(job) - 1
    text = END if is_end else f"{step} "
    log_prob = None if job.log_probs is None else -float(step)
    top = (Alternative(step, text, -float(step)),) * min(1, job.log_probs or 0)
    return TokenScore(step, text, log_prob, top, text if job.is_raw else "", is_end)


def echo_of(job: TextJob) -> tuple[TokenScore, ...] | None:
    """What is told of the prompt where that is asked for: each word is a token."""
    if not job.is_raw or not job.echoes:
        return None
    words = re.findall(r" *\S+ *$| *\S+", script_of(job))
    log_probs = [None if n == 0 or job.log_probs is None else -n / 2 for n in range(len(words))]
    return tuple(TokenScore(n, word, log_probs[n], alone=word) for n, word in enumerate(words))


def _text_of(step: int, n_steps: int) -> str:
    """What a step publishes: the second token's text is held back until the third."""
    if n_steps >= 3 and step in (1, 2):
        return "" if step == 1 else "1 2 "
    return f"{step} "


def result_of(job: TextJob, n_tokens: int, *, is_partial: bool = False) -> TextResult:
    """The result that so many scripted tokens are."""
    scores = tuple(score_of(job, n) for n in range(n_tokens))
    text = "".join(each.text for each in scores)
    is_at_end = bool(scores) and scores[-1].is_special
    sequence = SequenceResult(
        text=text,
        stop_string="",
        stop_match="",
        tail="",
        output_text=getattr(job.prompt, "preamble", "") + script_of(job) + text,
        penalty_text_at_end="",
        tokens=tuple(range(n_tokens)),
        finish_reason=_finish_reason(is_at_end=is_at_end, is_partial=is_partial),
        scores=scores if job.tells_tokens else None,
    )
    return TextResult(
        prompt=PromptReport(
            preamble=getattr(job.prompt, "preamble", ""),
            used_prompt=script_of(job),
            n_preamble=0,
            n_original_prompt=3,
            n_original_input=3,
            n_used_prompt=3,
            n_used_input=3,
            echo=echo_of(job),
            items=_changed_items(job),
        ),
        penalty=PenaltyReport(),
        sequences=(sequence,) * (job.n_kept or job.n_sequences),
        n_generated=n_tokens,
        n_made=n_tokens * job.n_sequences,
        n_candidates=job.n_sequences,
        answer_fields=job.answer_fields,
        is_partial=is_partial,
    )


def _finish_reason(*, is_at_end: bool, is_partial: bool) -> FinishReason:
    if is_partial:
        return FinishReason.CANCELLED
    return FinishReason.END_OF_TEXT if is_at_end else FinishReason.LENGTH


def _changed_items(job: TextJob) -> tuple[PromptItem, ...] | None:
    prompt = job.prompt
    return prompt.items if isinstance(prompt, ItemsPrompt) and prompt.is_changed else None
