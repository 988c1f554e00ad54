"""Random numbers that are a function of where they are used, not of what was drawn before."""

from __future__ import annotations

import torch
from torch import Tensor

_LOW_16 = 0xFFFF
_LOW_32 = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_N_ROUNDS = 10
_WEYL_STEP = 0x9E3779B97F4A7C15
_MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31
_BELOW_ONE = 1 - 2.0**-24


def exponentials(seeds: Tensor, sequences: Tensor, steps: Tensor, n: int) -> Tensor:
    """N numbers for each (seed, sequence, step), independent, exponentially distributed (rate 1).

    SplitMix64 started from the first 64 bits of Philox4x32-10, with the seed as key and (step,
    sequence) as counter; 53 bits of each word make the number, small ones with full precision.

    Args:
        seeds: [B] int64, 0 ... 2^63 - 1.
        sequences: [B] int64, >= 0.
        steps: [B] int64, >= 0.
        n: >= 1, numbers of each.

    Returns:
        [B, n] float32, above 0 and at most 16.7, on the device of the arguments.
    """
    counter = [steps & _LOW_32, steps >> 32, sequences & _LOW_32, sequences >> 32]
    words = philox(counter, [seeds & _LOW_32, seeds >> 32])
    bits = splitmix((words[0] << 32) | words[1], n)
    uniform = _shift(bits, 11).mul_(2).add_(1).to(torch.float32).mul_(2.0**-54)
    return uniform.clamp_(max=_BELOW_ONE).neg_().log1p_().neg_()


def splitmix(keys: Tensor, n: int) -> Tensor:
    """The first n words of SplitMix64 (Steele, Lea and Flood 2014, doi 10.1145/2660193.2660195).

    Args:
        keys: [B] int64, the 64 bits of each generator's state.
        n: >= 1.

    Returns:
        [B, n] int64, the 64 bits of each word.
    """
    places = torch.arange(1, n + 1, device=keys.device)
    words = keys[:, None] + places * _signed(_WEYL_STEP)
    for shift, factor in _MIXERS:
        words = words.bitwise_xor_(_shift(words, shift)).mul_(_signed(factor))
    return words.bitwise_xor_(_shift(words, _LAST_SHIFT))


def _shift(words: Tensor, n_bits: int) -> Tensor:
    """64-bit words shifted right, with zeros coming in."""
    return (words >> n_bits).bitwise_and_((1 << (64 - n_bits)) - 1)


def _signed(word: int) -> int:
    """A 64-bit word as int64 has it."""
    return word - 2**64 if word >= 2**63 else word


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
