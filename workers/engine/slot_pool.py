"""Which cache rows are free, and what texts the rows hold, so that none is read twice."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from workers.engine.attention_control import AttentionControl
from workers.engine.sequence import Sequence
from workers.engine.slot_cache import SlotCache

SHORTEST_COPY = 16
"""Tokens from which on copying the beginning of another row costs less than reading it again."""


class SlotPool:
    """The rows of a cache.

    A row keeps its text when it becomes free, until another needs the room: the one that nobody has
    needed for longest goes first. So a chat's next turn, or a prompt behind the same preamble, is
    read from where it differs.

    Args:
        cache: where the rows are.
        slots: how many there are.
    """

    def __init__(self, cache: SlotCache, slots: int) -> None:
        self._cache = cache
        self._kept: dict[int, list[int]] = {slot: [] for slot in range(slots)}
        """Texts of free rows, in the order in which they became free or were copied last."""
        self._running: dict[int, Sequence] = {}

    @property
    def n_free(self) -> int:
        """Rows that nobody has."""
        return len(self._kept)

    def give(self, sequence: Sequence, text: SequenceOf[int]) -> int:
        """Give a sequence a row; there must be one.

        Args:
            sequence: who gets it.
            text: names of what will be read into it; empty = nothing that another row could tell.

        Returns:
            Tokens of the text that the row holds already, never all of them.
        """
        source, n_shared = self._best_match(text, sequence.control)
        oldest = next(iter(self._kept))
        n_lost = len(self._kept.get(source, ())) - n_shared
        if source in self._kept and n_lost < SHORTEST_COPY:
            slot = source
        elif n_shared >= SHORTEST_COPY:
            slot = oldest
            if slot != source:
                # Nothing is sure about the row any more when copying fails.
                self._kept[slot] = []
                self._cache.copy_row(source, slot, n_shared)
                if source in self._kept:
                    self._kept[source] = self._kept.pop(source)
        else:
            slot, n_shared = oldest, 0
        del self._kept[slot]
        self._running[slot] = sequence
        sequence.slot, sequence.n_held = slot, n_shared
        self._cache.factors.control(slot, sequence.control)
        return n_shared

    def take_back(self, sequence: Sequence, *, is_sound: bool = True) -> None:
        """Take a sequence's row, if it has one.

        Args:
            sequence: whose row.
            is_sound: whether what it holds can be relied on; if not, it is wiped out.
        """
        slot = sequence.slot
        if slot is None:
            return
        sequence.slot = None
        del self._running[slot]
        self._cache.factors.control(slot, None)
        if not is_sound:
            # Not a number would spread from masked places too.
            self._cache.clear_row(slot)
        text = sequence.shared_text if is_sound else []
        if text:
            self._kept[slot] = text
        else:
            self._kept = {slot: [], **self._kept}

    def _best_match(
        self, text: SequenceOf[int], control: AttentionControl | None
    ) -> tuple[int, int]:
        """The row that holds most of a text's beginning, and how many tokens of it.

        What a control reaches, and all behind, no other row holds.
        """
        best = (next(iter(self._kept)), 0)
        longest = len(text) - 1 if control is None else min(len(text) - 1, control.first_place)
        if longest <= 0:
            return best
        held = self._kept | {slot: each.shared_text for slot, each in self._running.items()}
        for slot, other in held.items():
            n_shared = min(shared_length(text, other), longest)
            if n_shared > best[1]:
                best = (slot, n_shared)
        return best


def shared_length(one: SequenceOf[int], other: SequenceOf[int]) -> int:
    """Number of tokens with which both texts begin."""
    low, high = 0, min(len(one), len(other))
    # Slices are compared many tokens at a time, unlike tokens in a loop.
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
