"""The only place that decides whether generated text has come to a stop string."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import regex

from neodim_sampling.errors import InvalidParams, StopPatternTimeout
from neodim_sampling.parameters import StopKind, StopParams
from neodim_sampling.text.automaton import string_automaton
from neodim_sampling.text.pattern_size import expanded_size

SEARCH_TIMEOUT_S = 0.3
"""Seconds for one search of one pattern."""

SEQUENCE_TIMEOUT_S = 0.8
"""Seconds for all slow searches of one sequence."""

SLOW_SEARCH_S = 0.01
"""Quicker searches are free: thousands of them mean a long text, not a bad pattern."""

MAX_PATTERN_LENGTH = 10_000
"""Characters of a pattern."""

MAX_EXPANDED_SIZE = 50_000
"""Characters of all patterns of a request with their repeats written out."""

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
        compiled: regex.Pattern[str] = regex.compile(pattern)
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

    def check(self, text: str) -> StopMatch | None:
        """The match that ends this sequence, if the last token completed one.

        The strings are tried in their order. One counts when it has matched in
        `required_matches` calls in a row; its position is that of its first match in the text at
        the last of them.

        Raises:
            StopPatternTimeout: a pattern takes too long on this text.
        """
        return self._search.check(text) if self._search else None

    def held_back(self, text: str) -> int:
        """How many characters at the end may yet turn out to be part of a stop.

        For strings: from the start of one that has matched too few times yet, else the longest
        end of the text with which one begins. For patterns: from the start of the first match,
        complete or cut off by the end of the text; nearly nothing for most, but all of the text
        where a pattern starts with something like `(?s).*`.

        Raises:
            StopPatternTimeout: a pattern takes too long on this text.
        """
        return self._search.held_back(text) if self._search else 0


class _Substrings:
    """Plain strings. What is in a text stays there, so each character is read only once."""

    def __init__(self, params: StopParams) -> None:
        self._strings = tuple(dict.fromkeys(params.strings))
        self._required = params.required_matches
        self._automaton = string_automaton(self._strings)
        self._state = 0
        self._n_read = 0
        self._starts: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def check(self, text: str) -> StopMatch | None:
        self._read(text)
        for string in self._strings if self._starts else ():
            if string not in self._starts:
                continue
            self._counts[string] += 1
            if self._counts[string] >= self._required:
                start = self._starts[string]
                return StopMatch(string, start, start + len(string))
        return None

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
        self._required = params.required_matches
        self._counts = dict.fromkeys(self._patterns, 0)
        self._slow_s = 0.0

    def check(self, text: str) -> StopMatch | None:
        for string in self._patterns:
            match = self._match(string, text)
            self._counts[string] = self._counts[string] + 1 if match else 0
            if match and self._counts[string] >= self._required:
                return StopMatch(string, match.start(), match.end())
        return None

    def held_back(self, text: str) -> int:
        matches = [self._match(each, text, partial=True) for each in self._patterns]
        return max((len(text) - match.start() for match in matches if match), default=0)

    def _match(self, string: str, text: str, *, partial: bool = False) -> Any:
        started_s = time.thread_time()
        budget_s = min(SEARCH_TIMEOUT_S, SEQUENCE_TIMEOUT_S - self._slow_s)
        try:
            if budget_s <= 0:
                raise TimeoutError
            # Concurrent: a slow search must not hold the interpreter's lock against other jobs.
            match = self._patterns[string].search(
                text, timeout=budget_s, partial=partial, concurrent=True
            )
        except TimeoutError as error:
            raise StopPatternTimeout(
                f"stop_strings: the pattern {_shown(string)} takes too long on the generated text"
            ) from error
        taken_s = time.thread_time() - started_s
        if taken_s > SLOW_SEARCH_S:
            self._slow_s += taken_s
        return match


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= MAX_SHOWN else f"{pattern[:MAX_SHOWN]}...")
