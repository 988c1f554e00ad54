"""Random numbers that are a function of where they are used, not of what was drawn before."""

from __future__ import annotations

import torch
from torch import Tensor

_LOW_32 = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_N_ROUNDS = 10
_WEYL_STEP = 0x9E3779B97F4A7C15
_MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31
_BELOW_ONE = 1 - 2.0**-24
Words = tuple[int, int, int, int]


def stream_key(seed: int, sequence: int, step: int) -> int:
    """What `exponentials` starts from at one place: the first 64 bits of Philox4x32-10.

    On the host because it is scalar work: as tensors its hundred operations take longer.

    Args:
        seed: 0 ... 2^63 - 1, the generator's key.
        sequence: >= 0, half of its counter.
        step: >= 0, the other half.

    Returns:
        64 bits as int64 has them.
    """
    counter = (step & _LOW_32, step >> 32, sequence & _LOW_32, sequence >> 32)
    high, low, *_ = philox(counter, (seed & _LOW_32, seed >> 32))
    return _signed(high << 32 | low)


def exponentials(keys: Tensor, n: int) -> Tensor:
    """N numbers for each key, independent, exponentially distributed (rate 1).

    53 bits of each word of SplitMix64 make a number, small ones with full precision.

    Args:
        keys: [B] int64, one `stream_key` each.
        n: >= 1, numbers of each.

    Returns:
        [B, n] float32, above 0 and at most 16.7, on the device of the keys.
    """
    uniform = _shift(splitmix(keys, n), 11).mul_(2).add_(1).to(torch.float32).mul_(2.0**-54)
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


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011, doi 10.1145/2063384.2063405).

    Args:
        counter: 32 bits each.
        key: 32 bits each.

    Returns:
        128 random bits, 32 each.
    """
    a, b, c, d = counter
    first_key, second_key = key
    for _ in range(_N_ROUNDS):
        from_a, from_c = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = from_c >> 32 ^ b ^ first_key, from_c & _LOW_32
        c, d = from_a >> 32 ^ d ^ second_key, from_a & _LOW_32
        first_key = (first_key + _KEY_STEPS[0]) & _LOW_32
        second_key = (second_key + _KEY_STEPS[1]) & _LOW_32
    return a, b, c, d
