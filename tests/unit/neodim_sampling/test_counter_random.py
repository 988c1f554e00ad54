"""Tests of the counter-based random numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from neodim_sampling.counter_random import exponentials, philox, splitmix


def words(text: str) -> list[Tensor]:
    return [torch.tensor([int(word, 16)]) for word in text.split()]


# The known answers that Random123, the authors' own implementation, is tested with.
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (
            "ffffffff ffffffff ffffffff ffffffff",
            "ffffffff ffffffff",
            "408f276d 41c83b0e a20bc7c6 6d5451fd",
        ),
        (
            "243f6a88 85a308d3 13198a2e 03707344",
            "a4093822 299f31d0",
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_known_answers(counter: str, key: str, expected: str):
    known = [int(word) for word in words(expected)]

    found = [int(word) for word in philox(words(counter), words(key))]

    assert found == known


def test_splitmix_gives_the_known_words():
    # Of the published reference implementation, for the state 1234567.
    known = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]

    found = splitmix(torch.tensor([1234567]), 5)[0]

    assert [word % 2**64 for word in found.tolist()] == known


def test_numbers_do_not_depend_on_their_neighbours():
    seeds = torch.tensor([0, 1, 2**63 - 1, 12345, 12345])
    sequences = torch.tensor([0, 3, 1, 0, 1])
    steps = torch.tensor([7, 0, 2**40, 5, 5])

    together = exponentials(seeds, sequences, steps, 3)

    alone = [
        exponentials(seeds[i : i + 1], sequences[i : i + 1], steps[i : i + 1], 3) for i in range(5)
    ]
    assert torch.equal(together, torch.cat(alone))
    assert len(set(together.flatten().tolist())) == 15


def test_more_numbers_begin_with_the_same_ones():
    place = torch.tensor([9]), torch.tensor([0]), torch.tensor([1])

    assert torch.equal(exponentials(*place, 100)[:, :7], exponentials(*place, 7))


def test_numbers_are_distributed_exponentially():
    n = 40_000
    place = torch.tensor([42]), torch.tensor([0]), torch.tensor([0])

    numbers = exponentials(*place, n)[0]

    counts = torch.histc(1 - (-numbers).exp(), bins=100, min=0, max=1)
    chi_square = float(((counts - n / 100) ** 2 / (n / 100)).sum())
    assert numbers.dtype == torch.float32
    assert numbers.min() > 0
    assert chi_square < 150  # 99 degrees of freedom: exceeded once in a thousand seeds.


@pytest.mark.parametrize("varied", ["seed", "sequence", "step"])
def test_numbers_of_neighbouring_places_are_uncorrelated(varied: str):
    zeros = torch.zeros(20_000, dtype=torch.int64)
    counted = torch.arange(20_000)
    parts = {name: counted if name == varied else zeros for name in ("seed", "sequence", "step")}

    numbers = exponentials(parts["seed"], parts["sequence"], parts["step"], 1)[:, 0] - 1

    correlation = float((numbers[1:] * numbers[:-1]).mean())
    assert abs(correlation) < 0.03
