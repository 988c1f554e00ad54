"""The whole service: API, Redis, Celery and a real model, started as users start it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from stack import ROOT, TINY, Stack, running

from api.neodim import adapter
from workers.contract.settings import Settings
from workers.contract.store import JobStore

pytestmark = pytest.mark.stack

REQUEST: dict[str, Any] = {
    "prompt": "The old cat sees a red house near the river.",
    "generated_tokens_count": 12,
    "max_total_tokens": 250,
    "temperature": 1.0,
    "seed": 5,
}
LONG: dict[str, Any] = {**REQUEST, "generated_tokens_count": 200}
FRAGILE_MARGIN = 0.003
"""Recorded answers whose closest decision was closer may differ between processors."""

KEPT = ("neodim:job:", "neodim:events:")
"""Beginnings of the keys of jobs that have ended; they expire."""


def text(answer: dict[str, Any]) -> str:
    return str(answer["sequences"][0]["generated_text"])


def events(stack: Stack, job_id: str, after: str | None = None) -> Iterator[tuple[str, str, Any]]:
    """Id, kind and data of each event, to the end of the stream."""
    headers = {} if after is None else {"Last-Event-ID": after}
    url = f"{stack.url}/v1/jobs/{job_id}/events"
    with requests.get(url, headers=headers, stream=True, timeout=60) as reply:
        event: dict[str, str] = {}
        for line in reply.iter_lines(chunk_size=1):
            name, _, value = line.decode().partition(": ")
            if line:
                event[name] = value
            elif "data" in event:
                yield event["id"], event["event"], json.loads(event["data"])
                event = {}


def part_of(answer: Any, expected: Any) -> Any:
    """As much of an answer as a recorded one has."""
    if isinstance(expected, dict):
        return {key: part_of(answer[key], value) for key, value in expected.items()}
    if isinstance(expected, list) and len(answer) == len(expected):
        return [part_of(*pair) for pair in zip(answer, expected, strict=True)]
    return answer


def begun(stack: Stack, job_id: str) -> None:
    """Wait until a job has made some tokens."""
    stack.until(lambda: stack.job(job_id)["progress"]["tokens_generated"] > 3, "it has begun")


def test_request_is_answered_and_repeated_by_its_seed(tiny_stack: Stack) -> None:
    first, second = (tiny_stack.generate(**REQUEST) for _ in range(2))

    assert first == second
    assert first["generated_tokens_count"] == 12


def test_requests_without_a_seed_differ(tiny_stack: Stack) -> None:
    fields = {name: value for name, value in REQUEST.items() if name != "seed"}

    texts = {text(tiny_stack.generate(**fields)) for _ in range(4)}

    assert len(texts) == 4


def test_job_answers_what_generate_would_have_answered(tiny_stack: Stack) -> None:
    job = tiny_stack.ended(tiny_stack.submit(**REQUEST))

    assert job["state"] == "succeeded"
    assert job["result"] == tiny_stack.generate(**REQUEST)


def test_stream_adds_up_to_the_text_from_any_place(tiny_stack: Stack) -> None:
    job_id = tiny_stack.submit(**LONG)

    heard = list(events(tiny_stack, job_id))
    whole = text(tiny_stack.job(job_id)["result"])
    middle = heard[len(heard) // 2][0]
    rest = list(events(tiny_stack, job_id, after=middle))

    assert "".join(data["text"] for _, kind, data in heard if kind == "delta") == whole
    assert heard[-1][1] == "succeeded"
    assert rest == heard[len(heard) // 2 + 1 :]


def test_cancelled_job_keeps_its_text(tiny_stack: Stack) -> None:
    job_id = tiny_stack.submit(**LONG)
    begun(tiny_stack, job_id)

    requests.delete(f"{tiny_stack.url}/v1/jobs/{job_id}", timeout=30)

    job = tiny_stack.ended(job_id)
    whole = text(tiny_stack.generate(**LONG))
    if job["state"] == "cancelled":
        assert job["partial"] is True
        assert text(job["result"])
    assert whole.startswith(text(job["result"]).rstrip("\ufffd"))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"sequences_count": 3},
        {"top_k": 4, "penalty_alpha": 0.6, "generated_tokens_count": 60},
        {"stop_strings": ["\\d{5}Q"], "stop_strings_type": "regex"},
        {"repetition_penalty": 1.3, "repetition_penalty_range": 50, "tfs": 0.95},
    ],
    ids=str,
)
def test_killed_worker_changes_nothing_but_time(tiny_stack: Stack, fields: dict[str, Any]) -> None:
    request = {**LONG, **fields}
    undisturbed = tiny_stack.generate(**request)
    job_id = tiny_stack.submit(**request)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(tiny_stack.generate, **request)
        heard = pool.submit(lambda: list(events(tiny_stack, job_id)))
        begun(tiny_stack, job_id)

        tiny_stack.kill_worker()

        job = tiny_stack.ended(job_id)
        assert waiting.result() == undisturbed
        stream = [data["text"] for _, kind, data in heard.result() if kind == "delta"]
    assert job["result"] == undisturbed
    if "sequences_count" not in fields:
        assert "".join(stream) == text(undisturbed)


def test_worker_that_was_frozen_past_its_lease_writes_nothing_more(tiny_stack: Stack) -> None:
    undisturbed = tiny_stack.generate(**LONG)
    job_id = tiny_stack.submit(**LONG)
    begun(tiny_stack, job_id)
    worker = tiny_stack.worker_pid()

    os.kill(worker, signal.SIGSTOP)
    lease = tiny_stack.redis().zscore("neodim:leases", job_id)
    assert lease is None or tiny_stack.until(
        lambda: tiny_stack.redis().time()[0] * 1000 > lease, "the lease lapses"
    )
    os.kill(worker, signal.SIGCONT)

    assert tiny_stack.ended(job_id)["result"] == undisturbed


@pytest.mark.parametrize("part", ["gunicorn", "valkey-server|redis-server"])
def test_killed_part_is_started_again_and_loses_no_job(tiny_stack: Stack, part: str) -> None:
    job_id = tiny_stack.submit(**LONG)
    redis = tiny_stack.redis()
    # The append-only file is written every second; what is younger may be forgotten.
    written_by = redis.time()[0] + 2
    tiny_stack.until(lambda: redis.time()[0] >= written_by, "the job is written")

    for pid, command in tiny_stack.processes().items():
        if re.search(part, command):
            os.kill(pid, signal.SIGKILL)

    tiny_stack.until(lambda: _answers(tiny_stack), "the API answers")
    assert tiny_stack.ended(job_id)["state"] == "succeeded"
    assert tiny_stack.generate(**REQUEST)["generated_tokens_count"] == 12


def test_streams_and_waiting_calls_bear_a_restart_of_redis(tiny_stack: Stack) -> None:
    url = f"{tiny_stack.url}/v1/completions"
    body = {"prompt": "The old cat", "max_tokens": 240, "n": 4, "seed": 5}
    undisturbed = [each["text"] for each in requests.post(url, json=body).json()["choices"]]

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(requests.post, url, json=body, timeout=60)
        stream = requests.post(url, json={**body, "stream": True}, stream=True, timeout=60)
        lines = stream.iter_lines()
        told = [next(lines)]
        for pid, command in tiny_stack.processes().items():
            if re.search("valkey-server|redis-server", command):
                os.kill(pid, signal.SIGKILL)
        told += list(lines)

    assert [each["text"] for each in waiting.result().json()["choices"]] == undisturbed
    texts = [""] * 4
    for line in filter(None, told[:-2]):
        (choice,) = json.loads(line.removeprefix(b"data: "))["choices"]
        texts[choice["index"]] += choice["text"]
    assert texts == undisturbed
    assert told[-2:] == [b"data: [DONE]", b""]


def _answers(stack: Stack) -> bool:
    try:
        return requests.get(f"{stack.url}/health/ready", timeout=5).status_code == 200
    except requests.RequestException:
        return False


def test_pattern_that_is_slow_only_on_an_unfinished_match_harms_nobody(tiny_stack: Stack) -> None:
    slow = {
        "prompt": "Hello there",
        "generated_tokens_count": 150,
        "max_total_tokens": 250,
        "seed": 3,  # its first X, where no match can go on, comes late
        "words_whitelist": ["story", "teacher", "range", "X"],
        "stop_strings": ["^(?:[a-z ]|[a-z ]{2})+;"],
        "stop_strings_type": "regex",
    }

    job_id = tiny_stack.submit(**slow)
    neighbours = [tiny_stack.generate(**{**REQUEST, "seed": seed}) for seed in range(3)]

    assert tiny_stack.ended(job_id)["error"]["code"] == "stop_pattern_timeout"
    assert [each["generated_tokens_count"] for each in neighbours] == [12] * 3
    assert tiny_stack.generate(**REQUEST)["generated_tokens_count"] == 12


def test_job_whose_ticket_was_lost_is_run_all_the_same(tiny_stack: Stack) -> None:
    job = adapter.load(REQUEST, Settings(model_name="gpt2"))

    job_id = JobStore(tiny_stack.redis(), result_ttl_s=60).create("neodim", job).id

    assert tiny_stack.ended(job_id)["result"] == tiny_stack.generate(**REQUEST)


def test_many_clients_lose_nothing_and_leave_nothing_behind(tiny_stack: Stack) -> None:
    seeds = range(400)

    def call(seed: int) -> tuple[int, str, str]:
        body = {**REQUEST, "seed": seed, "generated_tokens_count": 5}
        reply = requests.post(f"{tiny_stack.url}/generate", json=body, timeout=120)
        return reply.status_code, reply.headers["x-request-id"], text(reply.json())

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(call, seeds))
    again = [call(seed) for seed in range(0, 400, 50)]

    assert Counter(status for status, *_ in answers) == {200: 400}
    assert len({job_id for _, job_id, _ in answers}) == 400
    assert [words for *_, words in again] == [words for *_, words in answers[::50]]
    redis = tiny_stack.redis()
    tiny_stack.until(lambda: redis.zcard("neodim:leases") == 0, "no lease is left")
    keys = [key.decode() for key in redis.scan_iter(count=1000)]
    immortal = [key for key in keys if redis.ttl(key) == -1]
    assert not [key for key in immortal if key.startswith(KEPT)]
    assert not [key for key in keys if key.startswith(("neodim:waiting:", "neodim:celery:neodim."))]


def test_dropped_clients_free_their_slots(tiny_stack: Stack) -> None:
    def drop(seed: int) -> None:
        body = {**LONG, "seed": seed, "sequences_count": 4}
        with pytest.raises(requests.Timeout):
            requests.post(f"{tiny_stack.url}/generate", json=body, timeout=0.02)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(drop, range(32)))

    assert tiny_stack.generate(**REQUEST)["generated_tokens_count"] == 12
    tiny_stack.until(lambda: tiny_stack.redis().zcard("neodim:leases") == 0, "no lease is left")


def test_stopping_ends_what_was_started_and_the_next_start_goes_on(tmp_path: Any) -> None:
    with running("--model", str(TINY / "gpt2"), "--max-length", "250") as stack:
        undisturbed = stack.generate(**LONG)
        ids = [stack.submit(**LONG) for _ in range(40)]
        started = stack.processes()
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(requests.post, f"{stack.url}/generate", json=LONG, timeout=60)
            stack.until(lambda: stack.redis().zcard("neodim:waiting:gpt2") > 20, "it waits")

            status = stack.stop()

        alive = {pid: started[pid] for pid in started if os.path.exists(f"/proc/{pid}")}
        stack.start()
        results = [stack.ended(job_id)["result"] for job_id in ids]

    assert status == 0
    assert waiting.result().status_code == 503
    assert waiting.result().headers["x-request-id"] in waiting.result().json()["error"]
    assert len(started) >= 4
    assert alive == {}
    assert results == [undisturbed] * 40


def test_recorded_answers_come_beside_each_other_on_the_default_model() -> None:
    lines = (ROOT / "tests" / "data" / "neodim_cases.jsonl").read_text().splitlines()
    recorded = [json.loads(line) for line in lines]
    cases = [each for each in recorded if each.get("margin", 1) > FRAGILE_MARGIN]

    with running("--precision=float32") as stack, ThreadPoolExecutor(8) as pool:

        def ask(case: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            body = case["body"] if "body" in case else json.dumps(case["request"])
            reply = requests.post(f"{stack.url}/generate", data=body, timeout=300)
            return reply.status_code, reply.json()

        answers = list(pool.map(ask, cases))

    for case, (status, answer) in zip(cases, answers, strict=True):
        expected = case["expect"]
        if expected.get("error"):
            assert (status, bool(answer["error"])) == (400, True), case["name"]
        else:
            assert (status, part_of(answer, expected)) == (200, expected), case["name"]
