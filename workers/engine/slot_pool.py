"""Which cache rows are free."""

from __future__ import annotations

import heapq

from workers.engine.sequence import Sequence


class SlotPool:
    """Free rows, lowest first, so that running ones lie close together.

    Args:
        slots: rows of the cache.
    """

    def __init__(self, slots: int) -> None:
        self._free = list(range(slots))

    @property
    def n_free(self) -> int:
        """Rows that nobody has."""
        return len(self._free)

    def give(self, sequence: Sequence) -> None:
        """Give a sequence a row; there must be one."""
        sequence.slot = heapq.heappop(self._free)

    def take_back(self, sequence: Sequence) -> None:
        """Take a sequence's row, if it has one."""
        if sequence.slot is not None:
            heapq.heappush(self._free, sequence.slot)
            sequence.slot = None
