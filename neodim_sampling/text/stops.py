"""The only place that decides whether generated text has come to a stop string."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import regex

from neodim_sampling.errors import InvalidParams, StopPatternTimeout
from neodim_sampling.parameters import StopKind, StopParams
from neodim_sampling.text.automaton import string_automaton
from neodim_sampling.text.pattern_size import expanded_size

SEARCH_TIMEOUT_S = 0.3
"""Seconds for one search of one pattern."""

SEQUENCE_TIMEOUT_S = 0.8
"""Seconds for all calls of one sequence that are not free."""

FREE_S = 0.01
FREE_PER_PATTERN_S = 0.00005
"""Calls no longer than these together are free: thousands of them mean a long text, not a bad
pattern."""

MAX_PATTERN_LENGTH = 10_000
"""Characters of a pattern."""

MAX_EXPANDED_SIZE = 50_000
"""Characters of all patterns of a request with their repeats written out."""

MAX_PARTIAL_SIZE = 500
"""Characters of a pattern, with its repeats written out, that is tried on unfinished matches: the
first such search takes time with the third power of them, and no timeout ends it."""

MAX_SHOWN = 100
"""Characters of a pattern in an error text."""


@dataclass(frozen=True, slots=True)
class StopMatch:
    """Where generated text stops.

    Args:
        string: the stop string or pattern, as requested.
        start: position in the text where its match starts.
        end: position where its match ends; equal to `start` for an empty match.
    """

    string: str
    start: int
    end: int


def compile_patterns(strings: Sequence[str]) -> tuple[regex.Pattern[str], ...]:
    """Compile stop strings of kind regex, with no flags.

    Raises:
        InvalidParams: one is no regular expression, is too long, too deeply nested, or repeats
            too much.
    """
    size = 0
    for each in strings:
        size += expanded_size(each)
        if size > MAX_EXPANDED_SIZE:
            problem = f"with the repeats of {_shown(each)} written out, the patterns have more than"
            raise InvalidParams(
                "stop_strings", f"{problem} the {MAX_EXPANDED_SIZE} characters allowed"
            )
    return tuple(_compile(each) for each in strings)


def _compile(pattern: str) -> regex.Pattern[str]:
    if len(pattern) > MAX_PATTERN_LENGTH:
        problem = f"the pattern {_shown(pattern)} is longer than {MAX_PATTERN_LENGTH} characters"
        raise InvalidParams("stop_strings", problem)
    try:
        # Its cache would keep hundreds of large patterns for ever.
        compiled: regex.Pattern[str] = regex.compile(pattern, cache_pattern=False)
    except regex.error as error:
        raise InvalidParams("stop_strings", f"bad pattern {_shown(pattern)}: {error}") from error
    except (RecursionError, OverflowError, MemoryError) as error:
        problem = f"the pattern {_shown(pattern)} is nested too deeply or too large"
        raise InvalidParams("stop_strings", problem) from error
    return compiled


class StopChecker:
    """Watches the text of one sequence for stop strings, one call after every token.

    The text is the stable part of what was generated, without unfinished characters, and grows
    from call to call; only at the end of a sequence may it have an unfinished one as U+FFFD.

    Args:
        params: what to look for; None = nothing, ever.

    Raises:
        InvalidParams: a pattern is not valid.
    """

    def __init__(self, params: StopParams | None) -> None:
        self._search: _Substrings | _Patterns | None = None
        if params is not None:
            kind = _Patterns if params.kind is StopKind.REGEX else _Substrings
            self._search = kind(params)

    def check(self, text: str, rest: str = "") -> StopMatch | None:
        """The match that ends this sequence, if the last token completed one.

        Args:
            text: what will not change any more.
            rest: what is behind it if nothing follows, for a sequence that ends at its match.

        The strings are tried in their order. One counts when it has matched in
        `required_matches` calls in a row; its position is that of its first match in the text at
        the last of them.

        Raises:
            StopPatternTimeout: a pattern takes too long on this text.
        """
        return self._search.check(text, rest) if self._search else None

    def held_back(self, text: str) -> int:
        """How many characters at the end may yet turn out to be part of a stop.

        For strings: from the start of one that has matched too few times yet, else the longest
        end of the text with which one begins. For patterns: from the start of the first match,
        complete or cut off by the end of the text; nearly nothing for most, but all of the text
        where a pattern starts with something like `(?s).*`, and nothing for very large patterns.

        Raises:
            StopPatternTimeout: a pattern takes too long on this text.
        """
        return self._search.held_back(text) if self._search else 0


class _Substrings:
    """Plain strings. What is in a text stays there, so each character is read only once."""

    def __init__(self, params: StopParams) -> None:
        self._strings = tuple(dict.fromkeys(params.strings))
        self._takes_earliest = params.takes_earliest
        self._required = params.required_matches
        self._automaton = string_automaton(self._strings)
        self._state = 0
        self._n_read = 0
        self._starts: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def check(self, text: str, rest: str) -> StopMatch | None:
        self._read(text)
        found: list[StopMatch] = []
        for string in self._strings if self._starts else ():
            if string not in self._starts:
                continue
            self._counts[string] += 1
            if self._counts[string] >= self._required:
                start = self._starts[string]
                found.append(StopMatch(string, start, start + len(string)))
                if not self._takes_earliest:
                    break
        if not found and self._required == 1:
            found = self._in_rest(rest)
        return min(found, key=attrgetter("start"), default=None)

    def _in_rest(self, rest: str) -> list[StopMatch]:
        """The matches that end in what may yet change, which is not remembered."""
        state, found = self._state, []
        for end, character in enumerate(rest, start=self._n_read + 1):
            state = self._automaton.step(state, character)
            found += [
                StopMatch(each, end - len(each), end) for each in self._automaton.found[state]
            ]
        if self._takes_earliest or not found:
            return found
        return [min(found, key=lambda match: self._strings.index(match.string))]

    def held_back(self, text: str) -> int:
        self._read(text)
        from_starts = (len(text) - start for start in self._starts.values())
        return max(self._automaton.depths[self._state], *from_starts, 0)

    def _read(self, text: str) -> None:
        for end, character in enumerate(text[self._n_read :], start=self._n_read + 1):
            self._state = self._automaton.step(self._state, character)
            for string in self._automaton.found[self._state]:
                self._starts.setdefault(string, end - len(string))
                self._counts.setdefault(string, 0)
        self._n_read = len(text)


class _Patterns:
    """Regular expressions, searched for in the whole text each time: `^` is its start."""

    def __init__(self, params: StopParams) -> None:
        self._patterns = dict(zip(params.strings, compile_patterns(params.strings), strict=True))
        self._partial = [each for each in self._patterns if expanded_size(each) <= MAX_PARTIAL_SIZE]
        self._required = params.required_matches
        self._counts = dict.fromkeys(self._patterns, 0)
        self._free_s = FREE_S + FREE_PER_PATTERN_S * len(self._patterns)
        self._spent_s = 0.0

    def check(self, text: str, rest: str) -> StopMatch | None:
        with self._timed() as started_s:
            for string in self._patterns:
                match = self._match(string, text + rest, started_s)
                self._counts[string] = self._counts[string] + 1 if match else 0
                if match and self._counts[string] >= self._required:
                    return StopMatch(string, match.start(), match.end())
        return None

    def held_back(self, text: str) -> int:
        with self._timed() as started_s:
            found = [self._match(each, text, started_s, partial=True) for each in self._partial]
        return max((len(text) - match.start() for match in found if match), default=0)

    @contextmanager
    def _timed(self) -> Iterator[float]:
        """Count the time of a call, unless it is as short as it may be."""
        started_s = time.thread_time()
        yield started_s
        taken_s = time.thread_time() - started_s
        if taken_s > self._free_s:
            self._spent_s += taken_s

    def _match(self, string: str, text: str, started_s: float, *, partial: bool = False) -> Any:
        taken_s = time.thread_time() - started_s
        left_s = SEQUENCE_TIMEOUT_S - self._spent_s - (taken_s if taken_s > self._free_s else 0)
        try:
            if left_s <= 0:
                raise TimeoutError
            # Concurrent: a slow search must not hold the interpreter's lock against other jobs.
            return self._patterns[string].search(
                text, timeout=min(SEARCH_TIMEOUT_S, left_s), partial=partial, concurrent=True
            )
        except TimeoutError as error:
            raise StopPatternTimeout(
                f"stop_strings: the pattern {_shown(string)} takes too long on the generated text"
            ) from error


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= MAX_SHOWN else f"{pattern[:MAX_SHOWN]}...")
