"""The Python client against the whole service, and the README's examples of it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from stack import ROOT, Stack

from neodim_client import (
    AsyncClient,
    Client,
    CompletionRequest,
    CompletionResponse,
    DetokenizationRequest,
    EmbeddingRequest,
    EvaluationRequest,
    ExplanationRequest,
    GenerateRequest,
    JobEnded,
    JobFailed,
    JobState,
    Prompt,
    PromptGranularity,
    RequestRejected,
    StreamChunk,
    StreamSummary,
    TextAdded,
    TextControl,
    TextScore,
    TokenizationRequest,
    UnknownModel,
)

pytestmark = pytest.mark.stack

MODEL = "gpt2"
TEXT = "The old cat sees a red house near the river."
PROMPT = Prompt.from_text(TEXT)
README = (ROOT / "README.md").read_text()
SECTION = README.split("\n## Python client\n")[1].split("\n## ")[0]
EXAMPLES = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture
def client(tiny_stack: Stack) -> Iterator[Client]:
    with Client(tiny_stack.url) as client:
        yield client


def request(**fields: Any) -> GenerateRequest:
    """For a text that takes a while."""
    return GenerateRequest(
        prompt="The old cat", max_total_tokens=250, **{"generated_tokens_count": 200, **fields}
    )


def text_of(events: list[Any], index: int = 0) -> str:
    return "".join(
        each.text for each in events if isinstance(each, TextAdded) and each.index == index
    )


def kill(stack: Stack, word: str) -> None:
    for pid in stack.processes(word):
        os.kill(pid, signal.SIGKILL)


def test_generate_gives_what_the_endpoint_gives(tiny_stack: Stack, client: Client) -> None:
    asked = request(seed=5, generated_tokens_count=12, sequences_count=2)

    answer = client.generate(asked)

    plain = tiny_stack.generate(**asked.to_json())
    assert [each.generated_text for each in answer.sequences] == [
        each["generated_text"] for each in plain["sequences"]
    ]
    assert answer.used_prompt == plain["used_prompt"]


def test_job_gives_what_generate_gives(client: Client) -> None:
    asked = request(seed=5, generated_tokens_count=12)

    job = client.jobs.wait(client.jobs.submit(asked))

    assert job.answer() == client.generate(asked)


def test_events_go_on_over_the_death_of_the_api_and_of_the_worker(
    tiny_stack: Stack, client: Client
) -> None:
    asked = request(seed=7, sequences_count=2)
    undisturbed = [each.generated_text for each in client.generate(asked).sequences]
    job = client.jobs.submit(asked)
    events: list[Any] = []
    killed = ["gunicorn", "workers.celery_app"]

    for event in client.jobs.events(job):
        events.append(event)
        if killed and len(events) >= 3:
            kill(tiny_stack, killed.pop())

    assert killed == []
    assert [text_of(events, n) for n in range(2)] == undisturbed
    assert len({each.id for each in events}) == len(events)
    assert isinstance(events[-1], JobEnded)
    assert [each.generated_text for each in events[-1].job.answer().sequences] == undisturbed


def test_asynchronous_events_go_on_over_the_death_of_the_api(tiny_stack: Stack) -> None:
    async def follow() -> tuple[str, str]:
        async with AsyncClient(tiny_stack.url) as client:
            job = await client.jobs.submit(request(seed=8))
            events: list[Any] = []
            async for event in client.jobs.events(job):
                events.append(event)
                if len(events) == 3:
                    kill(tiny_stack, "gunicorn")
            ended = await client.jobs.wait(job)
            return text_of(events), ended.answer().sequences[0].generated_text

    heard, whole = asyncio.run(follow())

    assert heard == whole


def test_waiting_calls_bear_the_death_of_the_api(tiny_stack: Stack, client: Client) -> None:
    asked = request(seed=9)
    undisturbed = client.generate(asked)
    job = client.jobs.submit(asked)

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(client.jobs.wait, job)
        generating = pool.submit(client.generate, asked)
        tiny_stack.until(lambda: tiny_stack.redis().zcard("neodim:leases") > 0, "one runs")
        kill(tiny_stack, "gunicorn")

    assert waiting.result().answer() == undisturbed
    assert generating.result() == undisturbed


def test_cancelled_job_keeps_its_text(client: Client) -> None:
    job = client.jobs.submit(request(sequences_count=8))
    next(each for each in client.jobs.events(job) if isinstance(each, TextAdded))

    client.jobs.cancel(job)

    ended = client.jobs.wait(job)
    assert ended.state is JobState.CANCELLED
    assert ended.is_partial
    assert ended.result is not None
    assert ended.result.sequences[0].generated_text


def test_completion_stream_and_job_tell_one_text(client: Client) -> None:
    asked = CompletionRequest(PROMPT, maximum_tokens=16, log_probs=2, tokens=True, n=2)

    plain = client.complete(asked, MODEL)
    job = client.jobs.wait(client.jobs.submit(asked, model=MODEL))
    items = list(client.complete_with_streaming(asked, MODEL))

    assert _without_scores(job.answer()) == _without_scores(plain)
    for n, whole in enumerate(plain.completions):
        chunks = [each for each in items if isinstance(each, StreamChunk) and each.index == n]
        assert "".join(each.completion for each in chunks) == whole.completion
        tokens = [token for each in chunks for token in each.completion_tokens or ()]
        assert tokens == whole.completion_tokens
        assert len(whole.log_probs or ()) == 16
    ends = [each.finish_reason for each in items if isinstance(each, StreamSummary)]
    assert ends == ["maximum_tokens"] * 2


def _without_scores(answer: CompletionResponse) -> CompletionResponse:
    """Scores differ in their last bits with what is computed beside them."""
    completions = [replace(each, log_probs=None) for each in answer.completions]
    return replace(answer, completions=completions)


def test_errors_of_completions_have_their_classes(client: Client) -> None:
    with pytest.raises(UnknownModel) as caught:
        client.complete(CompletionRequest(PROMPT), "no-such-model")
    assert caught.value.code == "unknown_model"


def test_refusal_by_the_worker_reaches_waiting_calls_and_jobs(client: Client) -> None:
    too_long = CompletionRequest(Prompt.from_text("cat " * 400))

    with pytest.raises(RequestRejected, match=r"^prompt: 40. input tokens") as rejected:
        client.complete(too_long, MODEL)
    with pytest.raises(RequestRejected):
        next(client.complete_with_streaming(too_long, MODEL))
    with pytest.raises(JobFailed, match=r"prompt: 40. input tokens") as failed:
        client.jobs.wait(client.jobs.submit(too_long, model=MODEL)).answer()

    assert rejected.value.status == 400
    assert failed.value.code == "prompt_too_long"


def test_tokens_are_those_that_completions_are_made_of(client: Client) -> None:
    asked = CompletionRequest(PROMPT, maximum_tokens=0, tokens=True, echo=True)

    told = client.tokenize(TokenizationRequest(TEXT), MODEL)
    by_ids = replace(asked, prompt=Prompt.from_tokens(told.token_ids or ()))

    assert client.detokenize(DetokenizationRequest(told.token_ids or ()), MODEL).result == TEXT
    assert client.complete(by_ids, MODEL) == client.complete(asked, MODEL)
    assert client.complete(asked, MODEL).completions[0].completion == TEXT


def test_control_of_a_word_changes_what_is_likely_behind_it(client: Client) -> None:
    def likelihood(*controls: TextControl) -> float:
        asked = EvaluationRequest(Prompt.from_text(TEXT, controls), " The cat")
        return client.evaluate(asked, MODEL).result.log_probability

    start = TEXT.index("cat")
    plain = likelihood()

    assert likelihood(TextControl(start, 3, factor=1.0)) == plain
    assert abs(likelihood(TextControl(start, 3, factor=0.0)) - plain) > 1e-4


def test_explanation_scores_the_words_of_the_prompt(client: Client) -> None:
    asked = ExplanationRequest(PROMPT, " cat", prompt_granularity=PromptGranularity.WORD)

    (explanation,) = client.explain(asked, MODEL).explanations

    parts, of_target = explanation.items
    scored = [each for each in parts.scores if isinstance(each, TextScore)]
    assert [TEXT[each.start :][: each.length] for each in scored] == TEXT.split()
    assert (of_target.type, of_target.scores) == ("target", ())


def test_embedding_is_the_same_at_once_and_as_a_job(client: Client) -> None:
    asked = EmbeddingRequest(PROMPT, layers=[0, -1], pooling=["mean", "last_token"])

    answer = client.embed(asked, MODEL)

    job = client.jobs.wait(client.jobs.submit(asked, model=MODEL))
    assert job.answer() == answer
    assert {layer for layer, _ in answer.embeddings} == {"layer_0", "layer_2"}
    assert len(answer.embeddings["layer_0", "mean"]) > 1


def test_models_and_version_are_told(client: Client) -> None:
    (model,) = client.models()

    assert (model.name, model.max_context_size, model.image_support) == (MODEL, 250, False)
    assert client.version().startswith("1.")


def test_leaving_a_streamed_completion_ends_its_job(tiny_stack: Stack, client: Client) -> None:
    asked = CompletionRequest(PROMPT, maximum_tokens=200, n=4)

    stream = client.complete_with_streaming(asked, MODEL)
    next(stream)
    del stream

    tiny_stack.until(lambda: tiny_stack.redis().zcard("neodim:leases") == 0, "no lease is left")


def test_readme_shows_what_the_client_can_do() -> None:
    shown = "\n".join(EXAMPLES)

    for word in ("AsyncClient", "jobs.events", "TextControl", "RequestRejected", "RetryPolicy"):
        assert word in shown


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_of_the_readme_runs(tiny_stack: Stack, example: str) -> None:
    here = example.replace("http://127.0.0.1:8787", tiny_stack.url)
    here = here.replace("SmolLM2-135M-Instruct", MODEL)
    assert tiny_stack.url in here

    done = subprocess.run([sys.executable, "-W", "error", "-c", here], capture_output=True)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.strip()
