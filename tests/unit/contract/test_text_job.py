"""Canonical jobs and records keep what they are through JSON and Redis' bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import (
    ConstraintParams,
    IncludeGenerated,
    RepetitionPenaltyParams,
    StopKind,
    StopParams,
    WarperParams,
)
from neodim_sampling.prompts import PreamblePrompt
from workers.contract.job_body import decode_job, encode
from workers.contract.job_record import COMPRESSED_FROM_BYTES, JobState, pack, unpack
from workers.contract.text_job import SEED_LIMIT, TextJob

PROMPT = PreamblePrompt(
    preamble="Pre\u00e4mbel", text="\U0001f600\n", max_total_tokens=9, truncate_until=("\n", " ")
)
FULL = TextJob(
    model="m",
    prompt=PROMPT,
    max_new_tokens=4,
    seed=SEED_LIMIT - 1,
    n_sequences=3,
    warpers=WarperParams(temperature=0.1, top_k=3, order=("top_k", "*")),
    penalty=RepetitionPenaltyParams(
        penalty=1.5, slope=2.0, include_generated=IncludeGenerated.EXPAND, prompt="x"
    ),
    constraints=ConstraintParams(words_whitelist=("a",), can_stop_early=True),
    stops=StopParams(strings=("\\d",), kind=StopKind.REGEX, required_matches=2),
)


def test_job_is_the_same_after_json() -> None:
    assert decode_job(encode(FULL)) == FULL


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_new_tokens": -1}, "generated_tokens_count"),
        ({"n_sequences": 0}, "sequences_count"),
        ({"n_sequences": 257}, "sequences_count"),
        ({"seed": -1}, "seed"),
        ({"seed": SEED_LIMIT}, "seed"),
        ({"n_sequences": 2, "warpers": WarperParams(penalty_alpha=1, top_k=2)}, "sequences_count"),
    ],
    ids=str,
)
def test_job_that_cannot_be_is_not_made(fields: dict[str, Any], named: str) -> None:
    complete = {"model": "m", "prompt": PROMPT, "max_new_tokens": 4, "seed": 0, **fields}

    with pytest.raises(InvalidParams, match=f"^{named}: "):
        TextJob(**complete)


def test_job_out_of_its_ranges_is_not_read_either() -> None:
    body = encode(FULL).replace(b'"temperature":0.1', b'"temperature":-1')

    with pytest.raises(InvalidParams, match=r"^temperature: "):
        decode_job(body)


def test_job_of_another_version_is_told_apart() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_job(b'{"model": "m"}')


@given(st.binary(max_size=100) | st.just(b"x" * COMPRESSED_FROM_BYTES))
def test_bodies_come_back_as_they_were(body: bytes) -> None:
    assert unpack(pack(body)) == body


def test_large_bodies_are_compressed() -> None:
    assert len(pack(b"x" * COMPRESSED_FROM_BYTES)) < COMPRESSED_FROM_BYTES / 10


def test_final_states_are_those_that_nothing_follows() -> None:
    final = {state for state in JobState if state.is_ended}

    assert final == {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}
