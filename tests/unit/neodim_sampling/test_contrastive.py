"""Tests of the two decisions of contrastive search."""

from __future__ import annotations

import math

import pytest
import torch

from neodim_sampling.contrastive import best_candidate, candidates


def test_candidates_are_the_most_probable_tokens_in_order():
    scores = torch.tensor([0.0, 3.0, 1.0, 2.0])

    ids = candidates(scores, 3)

    assert ids.tolist() == [1, 3, 2]


def test_candidates_of_equal_probability_come_by_id():
    scores = torch.tensor([1.0, 2.0, 1.0, 2.0, 1.0])

    ids = candidates(scores, 3)

    assert ids.tolist() == [1, 3, 0]


def test_banned_tokens_are_no_candidates_even_when_few_are_left():
    scores = torch.tensor([-math.inf, 3.0, -math.inf, 1.0])

    ids = candidates(scores, 3)

    assert ids.tolist() == [1, 3]


@pytest.mark.parametrize("k", [4, 100])
def test_more_candidates_than_tokens_are_all_tokens(k: int):
    scores = torch.tensor([0.0, 3.0, 1.0, 2.0])

    ids = candidates(scores, k)

    assert ids.tolist() == [1, 3, 2, 0]


def test_best_candidate_is_unlike_the_context():
    probabilities = torch.tensor([0.6, 0.4])
    hidden = torch.tensor([[2.0, 0.0], [0.0, 0.5]])
    context = torch.tensor([[5.0, 0.0], [4.0, 3.0]])
    # Highest similarities 1 and 0.6; scores at 0.5: 0.3 - 0.5 and 0.2 - 0.3.

    winner = best_candidate(probabilities, hidden, context, 0.5)

    assert winner == 1


def test_best_candidate_is_the_likeliest_when_similarity_weighs_little():
    probabilities = torch.tensor([0.6, 0.4])
    hidden = torch.tensor([[2.0, 0.0], [0.0, 0.5]])
    context = torch.tensor([[5.0, 0.0], [4.0, 3.0]])

    winner = best_candidate(probabilities, hidden, context, 0.1)

    assert winner == 0


def test_first_of_equal_candidates_wins():
    probabilities = torch.tensor([0.5, 0.5])
    hidden = torch.ones(2, 3)
    context = torch.ones(1, 3)

    winner = best_candidate(probabilities, hidden, context, 0.6)

    assert winner == 0
