"""Search for many strings at once in a text that grows, at a cost that their number leaves alone.

Aho and Corasick, "Efficient string matching", 1975 (doi 10.1145/360825.360855).
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache


class StringAutomaton:
    """What has been read of a text, as the longest end of it with which one of the strings begins.

    States are numbers; 0 is the state of the empty text. Nothing changes after construction.

    Args:
        strings: what to look for, none of them empty.
    """

    def __init__(self, strings: tuple[str, ...]) -> None:
        self.depths = [0]
        """Length of that end, by state."""
        self.found: list[tuple[str, ...]] = [()]
        """The strings that end there, by state."""
        self._children: list[dict[str, int]] = [{}]
        self._fallbacks = [0]
        for string in strings:
            self._add(string)
        self._link()

    def step(self, state: int, character: str) -> int:
        """The state after one more character."""
        while character not in self._children[state]:
            if state == 0:
                return 0
            state = self._fallbacks[state]
        return self._children[state][character]

    def _add(self, string: str) -> None:
        state = 0
        for depth, character in enumerate(string, start=1):
            if character not in self._children[state]:
                self._children[state][character] = len(self.depths)
                self.depths.append(depth)
                self.found.append(())
                self._children.append({})
                self._fallbacks.append(0)
            state = self._children[state][character]
        self.found[state] = (string,)

    def _link(self) -> None:
        """Give each state the one to go on from where no string goes on as the text does."""
        waiting = deque(self._children[0].values())
        while waiting:
            state = waiting.popleft()
            for character, child in self._children[state].items():
                fallback = self.step(self._fallbacks[state], character)
                self._fallbacks[child] = fallback
                self.found[child] += self.found[fallback]
                waiting.append(child)


@lru_cache(maxsize=64)
def string_automaton(strings: tuple[str, ...]) -> StringAutomaton:
    """The automaton for some strings, shared by all sequences that look for the same."""
    return StringAutomaton(strings)
