"""The factors of attention that the keys in the cache have, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from workers.engine.attention_control import AttentionControl

REMOVED = -10000.0
"""What is added to the scores of keys with the factor 0. Finite: a text may have no other keys."""

IsLogAdditive: TypeAlias = bool | None
"""How a row's factors act; None = it has none."""


class RowFactors:
    """What attention controls do to the keys of all rows.

    Args:
        n_rows: the last one stays without factors.
        max_length: keys that a row can hold.
        device: where they are needed.
    """

    def __init__(self, n_rows: int, max_length: int, device: torch.device) -> None:
        self._factors = torch.ones(n_rows, max_length, device=device)
        self._neutral = n_rows - 1
        self._controls: dict[int, AttentionControl] = {}

    def control(self, slot: int, control: AttentionControl | None) -> None:
        """Begin a row anew, under a control or without; what it holds so far has no factors."""
        if self._controls.pop(slot, None) is not None:
            self._factors[slot] = 1
        if control is not None:
            self._controls[slot] = control

    def mode(self, slot: int) -> IsLogAdditive:
        """How the factors of a row act."""
        control = self._controls.get(slot)
        return None if control is None else control.is_log_additive

    def note(self, slot: int, start: int, tokens: Sequence[int]) -> None:
        """Find out the factors of tokens that a row is about to hold; once more does no harm."""
        control = self._controls.get(slot)
        if control is None:
            return
        factors = control.factors_of(start, tokens)
        if any(each != 1 for each in factors):
            row = self._factors[slot, start : start + len(tokens)]
            row.copy_(torch.tensor(factors[: len(row)]))

    def copy(self, source: int, target: int, length: int) -> None:
        """Let a row's first keys have the factors of another's."""
        if source in self._controls or target in self._controls:
            self._factors[target, :length] = self._factors[source, :length]

    def biases(self, slots: Sequence[int], n_keys: int) -> Tensor | None:
        """[B, 1, 1, n_keys] float32, added to the scores of keys; None = nothing."""
        factors = self._of(slots, n_keys, is_log_additive=True)
        return None if factors is None else as_biases(factors)

    def scales(self, slots: Sequence[int], n_keys: int) -> Tensor | None:
        """[B, 1, 1, n_keys] float32, times the scores' distance from the lowest; None = as is."""
        return self._of(slots, n_keys, is_log_additive=False)

    def candidates(
        self, slot: int, start: int, tokens: Sequence[int]
    ) -> tuple[Tensor | None, Tensor | None]:
        """Biases and scales [N, 1, 1, start + 1] of a row's keys behind each of N next tokens."""
        control = self._controls.get(slot)
        if control is None:
            return None, None
        factors = self._factors[slot, None, None, None, : start + 1].repeat(len(tokens), 1, 1, 1)
        own = [control.factors_of(start, [token])[0] for token in tokens]
        factors[..., start] = torch.tensor(own, device=factors.device)[:, None, None]
        return (as_biases(factors), None) if control.is_log_additive else (None, factors)

    def _of(self, slots: Sequence[int], n_keys: int, *, is_log_additive: bool) -> Tensor | None:
        if not self._controls:
            return None
        rows = [slot if self.mode(slot) is is_log_additive else self._neutral for slot in slots]
        if all(row == self._neutral for row in rows):
            return None
        places = torch.tensor(rows, device=self._factors.device)
        return self._factors[places, None, None, :n_keys]


def as_biases(factors: Tensor) -> Tensor:
    """Logarithms of factors, which added to scores multiply what the softmax gives."""
    return factors.log().clamp_(min=REMOVED)
