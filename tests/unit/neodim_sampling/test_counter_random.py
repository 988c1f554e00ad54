"""Tests of the counter-based random numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from neodim_sampling.counter_random import philox, uniforms


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


def test_number_is_the_first_53_bits():
    zero = torch.tensor([0])

    number = uniforms(zero, zero, zero)

    assert number.dtype == torch.float64
    assert number.item() == (0x6627E8D5E169C58D >> 11) / 2**53


def test_number_does_not_depend_on_its_neighbours():
    seeds = torch.tensor([0, 1, 2**63 - 1, 12345, 12345])
    sequences = torch.tensor([0, 3, 1, 0, 1])
    steps = torch.tensor([7, 0, 2**40, 5, 5])

    together = uniforms(seeds, sequences, steps)

    alone = [uniforms(seeds[i : i + 1], sequences[i : i + 1], steps[i : i + 1]) for i in range(5)]
    assert torch.equal(together, torch.cat(alone))
    assert len(set(together.tolist())) == 5


def test_numbers_fill_the_unit_interval_evenly():
    n = 40_000
    steps = torch.arange(n)
    same = torch.full((n,), 42)

    numbers = uniforms(same, torch.zeros_like(steps), steps)

    counts = torch.histc(numbers, bins=100, min=0, max=1)
    chi_square = float(((counts - n / 100) ** 2 / (n / 100)).sum())
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert chi_square < 150  # 99 degrees of freedom: exceeded once in a thousand seeds.


@pytest.mark.parametrize("varied", ["seed", "sequence", "step"])
def test_numbers_of_neighbouring_places_are_uncorrelated(varied: str):
    zeros = torch.zeros(20_000, dtype=torch.int64)
    counted = torch.arange(20_000)
    parts = {name: counted if name == varied else zeros for name in ("seed", "sequence", "step")}

    numbers = uniforms(parts["seed"], parts["sequence"], parts["step"]) - 0.5

    correlation = float((numbers[1:] * numbers[:-1]).mean() * 12)
    assert abs(correlation) < 0.03
