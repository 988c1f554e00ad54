"""Random numbers that are a function of where they are used, not of what was drawn before."""

from __future__ import annotations

from torch import Tensor

_LOW_16 = 0xFFFF
_LOW_32 = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_N_ROUNDS = 10


def uniforms(seeds: Tensor, sequences: Tensor, steps: Tensor) -> Tensor:
    """One number for each (seed, sequence, step), uniform in [0, 1).

    The first 53 bits of Philox4x32-10 with the seed as key and (step, sequence) as counter.

    Args:
        seeds: [B] int64, 0 ... 2^63 - 1.
        sequences: [B] int64, >= 0.
        steps: [B] int64, >= 0.

    Returns:
        [B] float64 on the device of the arguments, the same on every device.
    """
    counter = [steps & _LOW_32, steps >> 32, sequences & _LOW_32, sequences >> 32]
    words = philox(counter, [seeds & _LOW_32, seeds >> 32])
    return ((words[0] << 21) | (words[1] >> 11)).double() * 2.0**-53


def philox(counter: list[Tensor], key: list[Tensor]) -> list[Tensor]:
    """Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011, doi 10.1145/2063384.2063405).

    Args:
        counter: four tensors of one shape, int64, each a 32-bit word.
        key: two of the same kind.

    Returns:
        Four of the same kind: 128 random bits.
    """
    a, b, c, d = counter
    first_key, second_key = key
    for _ in range(_N_ROUNDS):
        high_a, low_a = _multiply(a, _MULTIPLIERS[0])
        high_c, low_c = _multiply(c, _MULTIPLIERS[1])
        a, b, c, d = high_c ^ b ^ first_key, low_c, high_a ^ d ^ second_key, low_a
        first_key = (first_key + _KEY_STEPS[0]) & _LOW_32
        second_key = (second_key + _KEY_STEPS[1]) & _LOW_32
    return [a, b, c, d]


def _multiply(words: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """Upper and lower 32 bits of a 64-bit product, in halves because int64 has but 63."""
    low = words * (factor & _LOW_16)
    high = words * (factor >> 16) + (low >> 16)
    return high >> 16, ((high & _LOW_16) << 16) | (low & _LOW_16)
