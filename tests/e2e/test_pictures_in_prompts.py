"""A service whose text model reads pictures, as its users start it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from picture_files import stripes
from stack import Stack, running

from neodim_sampling.prompt_items import ImageItem, ItemsPrompt, PromptItem, TextItem
from workers.contract.fleet import Fleet
from workers.contract.job_record import JobRecord
from workers.contract.store import JobStore
from workers.contract.text_job import TextJob
from workers.contract.text_result import TextResult
from workers.contract.tickets import make_celery, send_ticket

pytestmark = pytest.mark.stack

N_TILES = 144


@pytest.fixture(scope="module")
def stack(tiny_vision_model: Path) -> Iterator[Stack]:
    with running("--model", str(tiny_vision_model), "--slots", "2") as stack:
        yield stack


def complete(stack: Stack, model: str, *items: PromptItem) -> JobRecord:
    """The record of a job that goes on with these, once it has ended."""
    client, url = stack.redis(), stack.redis_url()
    store = JobStore(client, 600)
    prompt = ItemsPrompt(items=items)
    record = store.create("neodim", TextJob(model=model, prompt=prompt, max_new_tokens=4, seed=1))
    send_ticket(make_celery(url), model)
    return stack.until(
        lambda: found if (found := store.get(record.id)).state.is_ended else None, "the job ends"
    )


def test_worker_says_that_it_reads_pictures(stack: Stack) -> None:
    assert [card.reads_pictures for card in Fleet(stack.redis()).workers()] == [True]


def test_text_is_made_behind_a_picture(stack: Stack) -> None:
    record = complete(stack, "tiny-eyes", TextItem(text="I see "), ImageItem(picture=stripes()))

    assert isinstance(record.result, TextResult), record.error
    assert record.result.prompt.n_used_input == len("I see ") + N_TILES
    assert len(record.result.sequences[0].tokens) == 4


def test_broken_picture_is_the_requests_fault(stack: Stack) -> None:
    record = complete(stack, "tiny-eyes", ImageItem(picture=stripes()[:99]))

    assert record.error is not None
    code, message = record.error
    assert code == "invalid_request"
    assert message.startswith("prompt: cannot be decoded")


def test_model_of_text_alone_says_that_it_reads_no_pictures(tiny_stack: Stack) -> None:
    record = complete(tiny_stack, "gpt2", ImageItem(picture=stripes()))

    assert [card.reads_pictures for card in Fleet(tiny_stack.redis()).workers()] == [False]
    assert record.error == ("missing_capability", "prompt: this model does not read pictures")
