"""The Python client against the API as gunicorn runs it, with a scripted worker behind it."""

from __future__ import annotations

import asyncio

import pytest
from scripted_worker import MODEL, ScriptedWorker
from test_api_server import running

from neodim_client import (
    AsyncClient,
    Client,
    CompletionRequest,
    CompletionSummary,
    DetokenizationRequest,
    EmbeddingRequest,
    EvaluationRequest,
    ExplanationRequest,
    GenerateRequest,
    JobEnded,
    JobFailed,
    JobNotFound,
    JobState,
    Prompt,
    RequestRejected,
    StateChanged,
    StreamChunk,
    TextAdded,
    TimedOut,
    TokenizationRequest,
    UnknownModel,
)
from workers.contract.redis_client import connect

pytestmark = pytest.mark.redis

TEXT = "0 1 2 3 "


@pytest.fixture(scope="module")
def url(redis_server_url, tmp_path_factory):
    """Of a running API, with a worker behind it."""
    connect(redis_server_url).flushall()
    directory = tmp_path_factory.mktemp("api")
    worker = ScriptedWorker(redis_server_url, hands=4)
    with running(redis_server_url, directory) as (port, _), worker:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def client(url):
    with Client(url) as client:
        yield client


def count(prompt="count", **fields):
    return GenerateRequest(
        prompt=prompt, **{"generated_tokens_count": 4, "max_total_tokens": 64, **fields}
    )


def text_of(events):
    return "".join(each.text for each in events if isinstance(each, TextAdded))


def test_generate_is_answered(client):
    answer = client.generate(count(sequences_count=2))

    assert [each.generated_text for each in answer.sequences] == [TEXT, TEXT]
    assert answer.generated_tokens_count == 4


def test_refusal_names_the_field(client):
    with pytest.raises(RequestRejected, match=r"^temperature: ") as caught:
        client.generate(count(temperature=-1))

    assert caught.value.status == 400
    assert caught.value.request_id


def test_job_is_submitted_waited_for_and_answered(client):
    job = client.jobs.submit(count())

    ended = client.jobs.wait(job)

    assert ended.answer().sequences[0].generated_text == TEXT
    assert client.jobs.get(job.id) == ended
    assert (ended.progress.done, ended.progress.expected) == (4, 4)


def test_events_of_a_job_add_up_to_its_text(client):
    job = client.jobs.submit(count())

    events = list(client.jobs.events(job))

    assert text_of(events) == TEXT
    assert isinstance(events[-1], JobEnded)
    assert events[-1].job.answer().sequences[0].generated_text == TEXT
    assert [each.state for each in events if isinstance(each, StateChanged)][-1] == "running"


def test_events_go_on_behind_any_of_them(client):
    job = client.jobs.submit(count())
    events = list(client.jobs.events(job))

    for n, each in enumerate(events[:-1]):
        assert list(client.jobs.events(job, after=each.id)) == events[n + 1 :]


def test_cancelled_job_ends_its_stream_and_keeps_what_it_has(client):
    job = client.jobs.submit(count("hold"))
    events = client.jobs.events(job)
    seen = [next(events)]
    while not isinstance(seen[-1], TextAdded):
        seen.append(next(events))

    client.jobs.cancel(job)
    seen += list(events)

    assert seen[-1].job.state is JobState.CANCELLED
    assert seen[-1].job.is_partial
    assert seen[-1].job.result.sequences[0].generated_text == "0 " == text_of(seen)


def test_wait_that_is_too_short_leaves_the_job_running(client):
    job = client.jobs.submit(count("hold"))

    with pytest.raises(TimedOut, match="still running"):
        client.jobs.wait(job, timeout_s=1)

    assert client.jobs.get(job.id).state is JobState.RUNNING
    assert client.jobs.wait(client.jobs.cancel(job)).state is JobState.CANCELLED


def test_failed_job_raises_its_code_when_it_is_asked_for_an_answer(client):
    job = client.jobs.wait(client.jobs.submit(count("fail out_of_memory")))

    with pytest.raises(JobFailed, match="it was to fail") as caught:
        job.answer()

    assert (caught.value.code, caught.value.job_id) == ("out_of_memory", job.id)


def test_requests_of_other_protocols_go_as_json(client):
    chat = {"model": MODEL, "messages": [{"role": "user", "content": "count"}], "max_tokens": 4}

    job = client.jobs.wait(client.jobs.submit(chat, protocol="chat"))

    assert job.answer()["choices"][0]["message"]["content"] == TEXT


def test_unknown_model_and_unknown_job_have_classes_of_their_own(client):
    chat = {"model": "other", "messages": [{"role": "user", "content": "count"}]}

    with pytest.raises(UnknownModel):
        client.jobs.submit(chat, protocol="chat")
    with pytest.raises(JobNotFound) as caught:
        client.jobs.wait("no-such-job")
    assert caught.value.job_id == "no-such-job"


def test_completion_is_answered_whole_streamed_and_as_a_job(client):
    asked = CompletionRequest(Prompt.from_text("count"), maximum_tokens=4, tokens=True, n=2)

    whole = client.complete(asked, MODEL)
    items = list(client.complete_with_streaming(asked, MODEL))
    job = client.jobs.wait(client.jobs.submit(asked, model=MODEL))

    assert [each.completion for each in whole.completions] == [TEXT, TEXT]
    chunks = [each for each in items if isinstance(each, StreamChunk)]
    for n in range(2):
        assert "".join(each.completion for each in chunks if each.index == n) == TEXT
    assert isinstance(items[-1], CompletionSummary)
    assert items[-1].num_tokens_generated == whole.num_tokens_generated == 8
    assert job.answer() == whole


def test_refused_completion_has_its_code(client):
    with pytest.raises(RequestRejected, match="temperature") as caught:
        client.complete(CompletionRequest(Prompt.from_text("count"), temperature=-1), MODEL)
    with pytest.raises(UnknownModel):
        client.complete(CompletionRequest(Prompt.from_text("count")), "other")

    assert caught.value.code == "invalid_request"


def test_texts_are_evaluated_explained_and_embedded(client):
    prompt = Prompt.from_text("count")

    evaluated = client.evaluate(EvaluationRequest(prompt, " day"), MODEL)
    explained = client.explain(ExplanationRequest(prompt, " day"), MODEL)
    embedded = client.embed(EmbeddingRequest(prompt, [0], ["mean", "max"]), MODEL)
    job = client.jobs.wait(client.jobs.submit(EvaluationRequest(prompt, " day"), model=MODEL))

    assert evaluated.result.log_perplexity == -evaluated.result.log_probability
    assert job.answer() == evaluated
    assert [each.type for each in explained.explanations[0].items] == ["text", "target"]
    assert set(embedded.embeddings) == {("layer_0", "mean"), ("layer_0", "max")}


def test_tokens_models_and_version_are_told(client):
    told = client.tokenize(TokenizationRequest("Hello world"), MODEL)

    assert told.token_ids
    assert len(told.tokens) == len(told.token_ids)
    assert client.detokenize(DetokenizationRequest(told.token_ids), MODEL).result == "Hello world"
    assert [each.name for each in client.models()] == [MODEL]
    assert client.version().startswith("1.")


def test_asynchronous_client_has_many_jobs_at_once(url):
    async def ask():
        async with AsyncClient(url) as client:

            async def follow():
                job = await client.jobs.submit(count())
                return text_of([each async for each in client.jobs.events(job)])

            async def wait():
                job = await client.jobs.wait(await client.jobs.submit(count()))
                return job.answer().sequences[0].generated_text

            async def generate():
                return (await client.generate(count())).sequences[0].generated_text

            asked = [what() for what in (follow, wait, generate) for _ in range(15)]
            return await asyncio.gather(*asked)

    assert asyncio.run(ask()) == [TEXT] * 45
