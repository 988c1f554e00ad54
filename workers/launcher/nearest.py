"""Suggests the name that was probably meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

LIKENESS = 0.75
"""Of difflib, 1 = the same: a slip of the hand or two, not merely letters in common."""


def nearest(name: str, known: Sequence[str]) -> str:
    """The known name that is most like an unknown one, as the end of a sentence, or nothing."""
    found = get_close_matches(name, known, n=1, cutoff=LIKENESS)
    return f"; did you mean {found[0]}?" if found else ""
