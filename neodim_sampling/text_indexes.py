"""What a row remembers of its text, kept up token by token: a step's cost does not grow with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable

import torch

_NEVER = 2**62
_GROWTH = 64


class PenaltyText:
    """The text that repetition penalty looks at, with where each token comes again.

    `ids[:length]` are the tokens; `next_same[i]` is the place of the next token equal to the one
    at i. Both are int64 on the CPU. The last occurrence of a token in a window is thus one whose
    `next_same` lies outside, whatever the window.
    """

    __slots__ = ("_places", "ids", "length", "n_base", "next_same")

    def __init__(self, base: Iterable[int]) -> None:
        ids = list(base)
        next_same = [_NEVER] * len(ids)
        self._places: dict[int, int] = {}
        for place, token in enumerate(ids):
            if token in self._places:
                next_same[self._places[token]] = place
            self._places[token] = place
        self.n_base = self.length = len(ids)
        self.ids = torch.tensor(ids + [0] * _GROWTH, dtype=torch.int64)
        self.next_same = torch.tensor(next_same + [0] * _GROWTH, dtype=torch.int64)

    def append(self, token: int) -> None:
        """Add a generated token."""
        if self.length == len(self.ids):
            self.ids = torch.cat([self.ids, torch.zeros_like(self.ids)])
            self.next_same = torch.cat([self.next_same, torch.zeros_like(self.next_same)])
        earlier = self._places.get(token)
        if earlier is not None:
            self.next_same[earlier] = self.length
        self.ids[self.length] = token
        self.next_same[self.length] = _NEVER
        self._places[token] = self.length
        self.length += 1


class TokenCounts:
    """How often each token is in a text, as the next step's penalties need it.

    `ids[:length]` are the distinct tokens, int64, and `counts[:length]` how often they came,
    float32; both on the CPU.
    """

    __slots__ = ("_places", "counts", "ids", "length")

    def __init__(self, tokens: Iterable[int]) -> None:
        numbers = Counter(tokens)
        self._places = {token: place for place, token in enumerate(numbers)}
        self.length = len(numbers)
        self.ids = torch.tensor([*numbers, *[0] * _GROWTH], dtype=torch.int64)
        self.counts = torch.tensor([*numbers.values(), *[0] * _GROWTH], dtype=torch.float32)

    def append(self, token: int) -> None:
        """Count one more token."""
        place = self._places.setdefault(token, self.length)
        if place == self.length:
            if self.length == len(self.ids):
                self.ids = torch.cat([self.ids, torch.zeros_like(self.ids)])
                self.counts = torch.cat([self.counts, torch.zeros_like(self.counts)])
            self.ids[place] = token
            self.length += 1
        self.counts[place] += 1


class NgramIndex:
    """Which tokens would complete an n-gram that the text already has.

    The last n - 1 tokens are known by a pair of names: runs of 2^j tokens are named by the names
    of their halves, and two such runs, overlapping, cover any length (Karp, Miller and Rosenberg
    1972, doi 10.1145/800152.804905). So a token costs O(log n) time and memory, and it is exact.
    """

    __slots__ = ("_followers", "_ids", "_n_context", "_names")

    def __init__(self, n: int, text: Iterable[int] = ()) -> None:
        self._n_context = n - 1
        n_levels = max(1, self._n_context.bit_length())
        self._names: list[list[int]] = [[] for _ in range(n_levels)]
        self._ids: dict[tuple[int, int, int], int] = {}
        self._followers: dict[tuple[int, int], set[int]] = {}
        for token in text:
            self.append(token)

    def append(self, token: int, *, can_repeat: bool = True) -> None:
        """Add the text's next token.

        Args:
            token: its id.
            can_repeat: whether the n-gram that it completes is one that could be repeated.
        """
        context = self._context() if can_repeat else None
        if context is not None:
            self._followers.setdefault(context, set()).add(token)
        self._names[0].append(token)
        place = len(self._names[0]) - 1
        for level in range(1, len(self._names)):
            shorter = self._names[level - 1]
            first = shorter[max(0, place - 2 ** (level - 1))]
            pair = (level, first, shorter[place])
            self._names[level].append(self._ids.setdefault(pair, len(self._ids)))

    def completions(self) -> Collection[int]:
        """The ids that would repeat an n-gram if they came next."""
        context = self._context()
        return () if context is None else self._followers.get(context, ())

    def _context(self) -> tuple[int, int] | None:
        names, n_context = self._names[-1], self._n_context
        if n_context == 0:
            return (0, 0)
        if len(names) < n_context:
            return None
        n_named = 2 ** (len(self._names) - 1)
        return names[len(names) - 1 - n_context + n_named], names[-1]


class SequenceIndex:
    """Which tokens would complete a banned sequence of two tokens or more.

    Sequences are found by the last token before their end, then by length, so that thousands of
    them cost no more than the few whose beginning may be there.
    """

    __slots__ = ("_endings",)

    def __init__(self, sequences: Iterable[tuple[int, ...]]) -> None:
        self._endings: dict[int, dict[int, dict[tuple[int, ...], list[int]]]] = {}
        for sequence in sequences:
            beginning = sequence[:-1]
            by_length = self._endings.setdefault(beginning[-1], {})
            by_beginning = by_length.setdefault(len(beginning), {})
            by_beginning.setdefault(beginning, []).append(sequence[-1])

    def completions(self, tail: Callable[[int], tuple[int, ...]]) -> list[int]:
        """The ids that would complete a sequence if they came next; may repeat.

        Args:
            tail: the text's last tokens, as many as asked for where there are so many.
        """
        found: list[int] = []
        last = tail(1)
        for length, by_beginning in self._endings.get(last[0], {}).items() if last else ():
            found += by_beginning.get(tail(length), ())
        return found
