"""Jobs as the standard's requests make them, for tests of the engine."""

from __future__ import annotations

from typing import Any

from api.standard.adapter import chat_job, completion_jobs, read_chat, read_completion
from workers.contract.text_job import TextJob

SENTENCE = "The old cat sees a red house near the river."


def plain_job(**fields: Any) -> TextJob:
    """A completion of one prompt; short and seeded unless its fields say otherwise."""
    body = {"model": "m", "prompt": SENTENCE, "max_tokens": 12, "seed": 7, **fields}
    (job,) = completion_jobs(read_completion(body))
    return job


def spoken_job(content: str, **fields: Any) -> TextJob:
    """A chat of one message; seeded, and without a length unless its fields have one."""
    messages = [{"role": "user", "content": content}]
    return chat_job(read_chat({"model": "m", "messages": messages, "seed": 7, **fields}))
