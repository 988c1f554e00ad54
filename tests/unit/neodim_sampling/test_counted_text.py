"""Tests of what penalties count, as greedy texts of two tokens that nothing else can beat."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from neodim_sampling.counted_text import PenaltyTokens
from neodim_sampling.parameters import WarperParams
from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.pipeline import choose, shape_scores
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints

A, B, OTHER, END = range(4)
N_VOCAB = 12
FILLER = [OTHER, 7, 8, 9]


def make_row(
    prompt: list[int] | None = None,
    generated: list[int] | None = None,
    tokens: PenaltyTokens | None = None,
    **fields: Any,
) -> SamplingRow:
    settings = RowSettings(
        warpers=WarperParams(top_k=1),
        adjustments=AdjustmentParams(logit_bias=((A, 400.0), (B, 300.0)), **fields),
        penalty_tokens=PenaltyTokens() if tokens is None else tokens,
        constraints=TokenConstraints(),
        n_vocab=N_VOCAB,
    )
    return SamplingRow(settings, prompt or FILLER, 0, 0, 0, generated or [])


def texts(rows: list[SamplingRow], n: int) -> list[str]:
    """Greedy texts of the rows as one batch."""
    scores = torch.randn(len(rows), N_VOCAB, generator=torch.Generator().manual_seed(1))
    for _ in range(n):
        tokens = choose(shape_scores(scores, rows), rows).tokens.tolist()
        for row, token in zip(rows, tokens, strict=True):
            row.append(token)
    return ["".join("AB"[token] if token < 2 else "?" for token in row.generated) for row in rows]


TEXT_OF_A = PenaltyTokens(counted_ids=(A,))
SPARED_A = PenaltyTokens(exempt_ids=frozenset({A, OTHER}))
PROMPT_ONLY = {"counts_prompt": True, "counts_generated": False}
PATTERNS: list[tuple[str, dict[str, Any]]] = [
    ("AAAAA", {}),
    ("ABAAA", {"presence_penalty": 150}),
    ("ABABA", {"frequency_penalty": 150}),
    ("BBBB", {"presence_penalty": 150, "prompt": [*FILLER, A], **PROMPT_ONLY}),
    ("AAAA", {"presence_penalty": 150, "prompt": [*FILLER, A], "counts_generated": False}),
    ("ABAA", {"presence_penalty": 150, "prompt": [*FILLER, A]}),
    ("BABA", {"frequency_penalty": 150, "prompt": [*FILLER, A], "counts_prompt": True}),
    ("BBB", {"presence_penalty": 150, "counts_generated": False, "tokens": TEXT_OF_A}),
    ("AAAA", {"presence_penalty": 150, "tokens": SPARED_A}),
    ("AAAA", {"presence_penalty": -50}),
    ("ABAA", {"presence_penalty": 1, "is_presence_multiplicative": True}),
    ("AAAA", {"presence_penalty": 0.1, "is_presence_multiplicative": True}),
    ("ABABA", {"frequency_penalty": 0.5, "is_frequency_multiplicative": True}),
    ("AABAA", {"sequence_penalty": 150, "sequence_min_length": 2}),
    ("AAAB", {"sequence_penalty": 150, "sequence_min_length": 3}),
]


@pytest.mark.parametrize(("expected", "fields"), PATTERNS)
def test_greedy_text_goes_as_the_penalties_say(expected: str, fields: dict[str, Any]):
    assert texts([make_row(**fields)], len(expected)) == [expected]


def test_rows_beside_each_other_go_as_they_do_alone():
    rows = [make_row(**fields) for _, fields in PATTERNS]

    found = texts(rows, 3)

    assert found == [expected[:3] for expected, _ in PATTERNS]


@pytest.mark.parametrize(("expected", "fields"), PATTERNS)
@pytest.mark.parametrize("n_before", [1, 2])
def test_resumed_text_goes_on_as_the_unbroken_one(
    expected: str, fields: dict[str, Any], n_before: int
):
    generated = ["AB".index(letter) for letter in expected[:n_before]]

    resumed = make_row(generated=generated, **fields)

    assert texts([resumed], len(expected) - n_before) == [expected]


def test_runs_of_the_prompt_alone_are_found_behind_what_is_generated():
    # Only "A A" is counted. Were "A B" and "B A" too, the third token would repeat one in any case.
    row = make_row([A, A], sequence_penalty=150, **PROMPT_ONLY)

    assert texts([row], 4) == ["BABA"]


def test_runs_of_prompt_and_generated_text_are_one():
    row = make_row([A, A], sequence_penalty=150, counts_prompt=True)

    assert texts([row], 4) == ["BAAA"]


def test_uncounted_prompt_is_no_part_of_a_run():
    row = make_row([A, A, A], sequence_penalty=150)

    assert texts([row], 5) == ["AABAA"]


def test_runs_do_not_go_from_one_text_into_another():
    # "A" ends the counted text and "A" begins the generated one.
    tokens = PenaltyTokens(counted_ids=(OTHER, A))

    assert texts([make_row(sequence_penalty=150, tokens=tokens)], 5) == ["AABAA"]


def test_runs_of_the_counted_text_count():
    tokens = PenaltyTokens(counted_ids=(OTHER, A, A))

    assert texts([make_row(sequence_penalty=150, tokens=tokens)], 3) == ["ABA"]


def test_places_of_the_prompt_that_are_no_tokens_are_passed_over():
    prompt = [A, -1, N_VOCAB, N_VOCAB + 7, -1, N_VOCAB]

    row = make_row(prompt, frequency_penalty=150, sequence_penalty=150, counts_prompt=True)

    assert texts([row], 2) == ["BA"]
