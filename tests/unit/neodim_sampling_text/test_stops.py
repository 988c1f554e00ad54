from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neodim_sampling.errors import InvalidParams, StopPatternTimeout
from neodim_sampling.parameters import StopKind, StopParams
from neodim_sampling.text import stops
from neodim_sampling.text.stops import StopChecker, StopMatch, compile_patterns

RUNAWAY = "(a+)+b"
LONG_RUN = "a" * 3000


def strings(*wanted: str, required: int = 1) -> StopChecker:
    return StopChecker(StopParams(strings=wanted, required_matches=required))


def patterns(*wanted: str, required: int = 1) -> StopChecker:
    params = StopParams(strings=wanted, kind=StopKind.REGEX, required_matches=required)
    return StopChecker(params)


def first_match(checker: StopChecker, tokens: list[str]) -> tuple[int, StopMatch] | None:
    """How many tokens it took, and the match."""
    text = ""
    for n_tokens, token in enumerate(tokens, start=1):
        text += token
        match = checker.check(text)
        if match is not None:
            return n_tokens, match
    return None


def test_nothing_stops_without_stop_strings() -> None:
    checker = StopChecker(None)

    assert (checker.check("anything."), checker.held_back("anything.")) == (None, 0)


@pytest.mark.parametrize("make", [strings, patterns])
def test_first_match_stops(make: type[StopChecker]) -> None:
    found = first_match(make("wor"), ["Hello", " wo", "rld wor", "x"])

    assert found == (3, StopMatch("wor", 6, 9))


@pytest.mark.parametrize("make", [strings, patterns])
def test_order_of_the_list_beats_position_in_the_text(make: type[StopChecker]) -> None:
    found = first_match(make("ity", "ci"), ["the", " city"])

    assert found == (2, StopMatch("ity", 5, 8))


@pytest.mark.parametrize("make", [strings, patterns])
def test_earlier_step_beats_order_of_the_list(make: type[StopChecker]) -> None:
    found = first_match(make("b", "a"), ["a", "b"])

    assert found == (1, StopMatch("a", 0, 1))


@pytest.mark.parametrize("make", [strings, patterns])
def test_match_counts_again_at_each_step_while_it_stays(make: type[StopChecker]) -> None:
    found = first_match(make("!", required=3), ["One!", " Two", "!", " Three"])

    assert found == (3, StopMatch("!", 3, 4))


@pytest.mark.parametrize("make", [strings, patterns])
def test_match_that_comes_too_late_to_count_does_not_stop(make: type[StopChecker]) -> None:
    assert first_match(make("!", required=3), ["One", "!", " Two"]) is None


@pytest.mark.parametrize("make", [strings, patterns])
def test_each_string_is_counted_on_its_own(make: type[StopChecker]) -> None:
    found = first_match(make("late", "early", required=2), ["early", " late", "x"])

    assert found == (2, StopMatch("early", 0, 5))


def test_string_listed_twice_counts_once_a_step() -> None:
    found = first_match(strings(".", ".", required=2), ["a.", "b"])

    assert found == (2, StopMatch(".", 1, 2))


def test_count_starts_again_when_a_pattern_stops_matching() -> None:
    checker = patterns(r"\.(?!\d)", required=2)

    found = first_match(checker, ["is 3.", "1", " m.", " It"])

    assert found == (4, StopMatch(r"\.(?!\d)", 8, 9))


def test_position_of_a_pattern_is_that_of_the_completing_step() -> None:
    found = first_match(patterns(r"\w+$", required=2), ["one", "two", "."])

    assert found == (2, StopMatch(r"\w+$", 0, 6))


def test_caret_is_the_start_of_the_generated_text() -> None:
    assert first_match(patterns("^b"), ["a", "b"]) is None


def test_empty_match_at_the_end_keeps_the_whole_text() -> None:
    found = first_match(patterns("$"), ["abc"])

    assert found == (1, StopMatch("$", 3, 3))


def test_empty_match_within_the_text_has_its_place() -> None:
    found = first_match(patterns("(?=c)"), ["ab", "cd"])

    assert found == (2, StopMatch("(?=c)", 2, 2))


def test_patterns_may_be_of_the_fancy_sort() -> None:
    found = first_match(patterns(r"\p{Lu}++\b"), ["ab CD", " e"])

    assert found == (1, StopMatch(r"\p{Lu}++\b", 3, 5))


@pytest.mark.parametrize(
    ("text", "n_held"),
    [
        ("", 0),
        ("abc", 0),
        ("say \n", 1),
        ("say \nYo", 3),
        ("\nYou:\n", 1),
        ("\n\n\n", 2),
        ("En", 2),
    ],
)
def test_end_that_a_stop_string_may_begin_with_is_held_back(text: str, n_held: int) -> None:
    checker = strings("\nYou: ", "\n\nA", "End")
    checker.check(text)

    assert checker.held_back(text) == n_held


def test_string_that_must_match_again_is_held_back_whole() -> None:
    checker = strings("stop", required=5)
    checker.check("go stop and")

    assert checker.held_back("go stop and") == len("stop and")


@pytest.mark.parametrize(
    ("pattern", "text", "n_held"),
    [
        ("[.!?]", "abc", 0),
        (r"\nYou\w*:", "a\nYou", 4),
        (r"\n\s*END", "a\n \n", 3),
        ("foo|bar", "a fo", 2),
        ("(?s).*END", "all of it", 9),
    ],
)
def test_end_that_a_pattern_may_begin_with_is_held_back(
    pattern: str, text: str, n_held: int
) -> None:
    assert patterns(pattern).held_back(text) == n_held


@given(
    wanted=st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=4),
    tokens=st.lists(st.text("abc", max_size=4), max_size=12),
    required=st.integers(1, 4),
)
def test_strings_stop_where_a_search_of_the_whole_text_says(
    wanted: list[str], tokens: list[str], required: int
) -> None:
    found = first_match(strings(*wanted, required=required), tokens)

    plain = first_match(patterns(*wanted, required=required), tokens)
    assert found == plain


@given(
    wanted=st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=4),
    tokens=st.lists(st.text("abc", max_size=4), max_size=12),
    required=st.integers(1, 4),
    kind=st.sampled_from(StopKind),
)
def test_stream_never_shows_text_of_the_match(
    wanted: list[str], tokens: list[str], required: int, kind: StopKind
) -> None:
    params = StopParams(strings=tuple(wanted), kind=kind, required_matches=required)
    checker = StopChecker(params)
    text, n_shown = "", 0

    for token in tokens:
        text += token
        match = checker.check(text)
        if match is not None:
            assert match.start >= n_shown
            break
        n_free = len(text) - checker.held_back(text)
        assert n_free >= n_shown or kind is StopKind.REGEX
        n_shown = max(n_shown, n_free)


def test_many_strings_are_found_in_their_order() -> None:
    wanted = [f"<{number:04}>" for number in range(1000)]

    found = first_match(strings(*wanted), ["x"] * 500 + ["<0999><0001>"])

    assert found == (501, StopMatch("<0001>", 506, 512))


def test_runaway_pattern_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stops, "SEARCH_TIMEOUT_S", 0.05)

    with pytest.raises(StopPatternTimeout, match=r"the pattern '\(a\+\)\+b' takes too long"):
        patterns(RUNAWAY).check(LONG_RUN)


def test_slow_searches_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stops, "FREE_S", 0.0)
    monkeypatch.setattr(stops, "FREE_PER_PATTERN_S", 0.0)
    monkeypatch.setattr(stops, "SEQUENCE_TIMEOUT_S", 1e-9)
    checker = patterns("x+y", "b")

    with pytest.raises(StopPatternTimeout):
        first_match(checker, ["x" * 100] * 3)


def test_many_patterns_that_are_slow_together_end_too() -> None:
    many = patterns(*(f"^.*.*.*[0-9{chr(0x4E00 + k)}]" for k in range(1900)))

    with pytest.raises(StopPatternTimeout):
        first_match(many, ["story teacher range "] * 60)


def test_very_large_pattern_is_not_tried_on_unfinished_matches() -> None:
    large = patterns("a?" * 2000 + "a" * 2000)

    assert large.check("a" * 30) is None
    assert large.held_back("a" * 30) == 0
    assert patterns("a?" * 20 + "a" * 20).held_back("a" * 10) == 10


def test_compiled_pattern_is_not_kept_for_ever() -> None:
    kept = weakref.ref(compile_patterns(["some pattern"])[0])

    gc.collect()

    assert kept() is None


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("[", "unterminated character set at position 1"),
        ("ab(", "missing \\) at position 3"),
        ("*", "nothing to repeat at position 0"),
        ("\\", "bad escape"),
        (r"\L<words>", "undefined named list"),
        ("a{99999999999999999999}", "written out"),
        ("(" * 5000, "nested too deeply"),
        ("(?:" * 2000 + "a" + ")" * 2000, "nested too deeply"),
        ("a" * 10_001, "longer than 10000 characters"),
    ],
    ids=lambda each: each[:12],
)
def test_bad_pattern_is_refused_with_its_problem(pattern: str, problem: str) -> None:
    with pytest.raises(InvalidParams, match=f"stop_strings: .*{problem}"):
        compile_patterns(["fine", pattern])


@pytest.mark.parametrize(
    "pattern", ["a" * 10_000, "(a{1,100}){1,100}", "(a?)" * 2000, "a|" * 5000, "(?i)" + "ß" * 9000]
)
def test_large_pattern_is_no_reason_to_refuse(pattern: str) -> None:
    assert len(compile_patterns([pattern])) == 1


def earliest(*wanted: str) -> StopChecker:
    return StopChecker(StopParams(strings=wanted, takes_earliest=True))


@pytest.mark.parametrize("order", [("ity", "ci"), ("ci", "ity")])
def test_earliest_match_of_a_step_stops_whatever_the_order_of_the_list(
    order: tuple[str, str],
) -> None:
    found = first_match(earliest(*order), ["the", " city"])

    assert found == (2, StopMatch("ci", 4, 6))


def test_match_of_an_earlier_step_stops_before_one_that_begins_earlier() -> None:
    found = first_match(earliest("abcd", "bc"), ["abc", "d"])

    assert found == (1, StopMatch("bc", 1, 3))


def test_of_two_matches_at_one_place_the_first_of_the_list_stops() -> None:
    matches = [first_match(earliest(*order), ["abc"]) for order in (("ab", "abc"), ("abc", "ab"))]

    assert matches == [(1, StopMatch("ab", 0, 2)), (1, StopMatch("abc", 0, 3))]
