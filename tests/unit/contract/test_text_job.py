"""Canonical jobs and records keep what they are through JSON and Redis' bytes."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import (
    ConstraintParams,
    StopKind,
    StopParams,
    WarperParams,
)
from neodim_sampling.penalty_parameters import (
    AdjustmentParams,
    IncludeGenerated,
    RepetitionPenaltyParams,
)
from neodim_sampling.prompts import ChatMessage, ChatPrompt, PlainPrompt, PreamblePrompt
from workers.contract.job_body import decode_job, encode
from workers.contract.job_record import COMPRESSED_FROM_BYTES, JobState, pack, unpack
from workers.contract.text_job import SEED_LIMIT, TextJob
from workers.contract.text_result import TextDelta, TokenScore, join_deltas

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
        ({"n_kept": 0}, "n_kept"),
        ({"n_sequences": 2, "n_kept": 3}, "n_kept"),
        ({"log_probs": -1}, "log_probs"),
        ({"log_probs": 21}, "log_probs"),
        ({"constraints": ConstraintParams(min_new_tokens=5)}, "minimum_tokens"),
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


@pytest.mark.parametrize(
    "prompt",
    [
        PlainPrompt(text="", echo=True),
        PlainPrompt(ids=(5, 0)),
        ChatPrompt(
            messages=(
                ChatMessage(role="user", content="\u4f60", name="Ann"),
                ChatMessage(role="tool", content="", tool_call_id="7"),
            )
        ),
    ],
    ids=str,
)
def test_job_of_every_kind_of_prompt_is_the_same_after_json(
    prompt: PlainPrompt | ChatPrompt,
) -> None:
    job = dataclasses.replace(
        FULL,
        prompt=prompt,
        max_new_tokens=None,
        n_kept=2,
        log_probs=0,
        user="me",
        adjustments=AdjustmentParams(presence_penalty=-1.5, logit_bias=((5, 0.5), (7, -2.0))),
        constraints=ConstraintParams(banned_ids=(3,), can_be_empty=True),
        stops=StopParams(strings=("a",), takes_earliest=True, ends_each=True),
    )

    assert decode_job(encode(job)) == job


@pytest.mark.parametrize(
    ("fields", "needs"),
    [({}, False), ({"log_probs": 0}, True), ({"n_kept": 1}, True), ({"log_probs": 20}, True)],
    ids=str,
)
def test_log_probabilities_are_needed_to_tell_and_to_choose(
    fields: dict[str, Any], needs: bool
) -> None:
    assert dataclasses.replace(FULL, **fields).needs_log_probs is needs


def test_job_without_a_length_may_want_any_number_of_tokens_at_least() -> None:
    constraints = ConstraintParams(min_new_tokens=10**6)

    job = dataclasses.replace(FULL, max_new_tokens=None, constraints=constraints)

    assert decode_job(encode(job)) == job


def test_job_without_a_length_expects_no_number_of_tokens() -> None:
    assert dataclasses.replace(FULL, max_new_tokens=None).n_expected_tokens == 0
    assert FULL.n_expected_tokens == 12


def test_joined_deltas_have_everything_and_where_their_text_was_cut() -> None:
    score = TokenScore(1, "a", -0.5)
    parts = [
        TextDelta(sequence=2, text="ab", tokens=(1,), scores=(score,)),
        TextDelta(sequence=2, text="", tokens=(2,)),
        TextDelta(sequence=2, text="c", tokens=(3, 4)),
    ]

    joined = join_deltas(2, parts)

    assert joined == TextDelta(
        sequence=2, text="abc", tokens=(1, 2, 3, 4), scores=(score,), cuts=(2, 1)
    )


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
