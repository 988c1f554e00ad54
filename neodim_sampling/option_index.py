"""Which tokens may come next in a text that has to be one of a few options."""

from __future__ import annotations

from collections.abc import Iterable, Set


class OptionIndex:
    """Where a text is within the options that it may still become, kept up token by token.

    Options with a common beginning share it (a tree of tokens), and a text may be at several
    places of the tree: behind one option and within a longer one.

    Args:
        options: runs of >= 1 ids.
        min_tokens: below so many tokens a new option may begin where one is complete.
        generated: the tokens so far.
    """

    def __init__(
        self, options: Iterable[tuple[int, ...]], min_tokens: int, generated: Iterable[int] = ()
    ) -> None:
        self._children: list[dict[int, int]] = [{}]
        self._wholes: set[int] = set()
        for option in options:
            self._add(option)
        self._min_tokens = min_tokens
        self._n_tokens = 0
        self._places = {0}
        for token in generated:
            self.append(token)

    def append(self, token: int) -> None:
        """Take the text's next token."""
        following = (self._children[place].get(token) for place in self._starts())
        self._places = {place for place in following if place is not None}
        self._n_tokens += 1

    def continuations(self) -> tuple[Set[int], bool]:
        """The ids that go on with an option, and whether the text may end here.

        Neither where the text has left all options.
        """
        ids = {token for place in self._starts() for token in self._children[place]}
        return ids, self._is_whole and self._n_tokens >= self._min_tokens

    @property
    def _is_whole(self) -> bool:
        return not self._places.isdisjoint(self._wholes)

    def _starts(self) -> set[int]:
        """The places from which the text may go on."""
        if self._is_whole and self._n_tokens < self._min_tokens:
            return self._places | {0}
        return self._places

    def _add(self, option: tuple[int, ...]) -> None:
        place = 0
        for token in option:
            if token not in self._children[place]:
                self._children[place][token] = len(self._children)
                self._children.append({})
            place = self._children[place][token]
        self._wholes.add(place)
