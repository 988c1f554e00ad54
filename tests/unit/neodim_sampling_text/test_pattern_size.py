"""Patterns that would take the memory of the machine are refused before they are compiled."""

from __future__ import annotations

import pytest

from neodim_sampling.errors import InvalidParams
from neodim_sampling.text.pattern_size import expanded_size
from neodim_sampling.text.stops import compile_patterns

HUGE = [
    "a{1000000000}",
    "(a{1000}){1000}",
    "((((a{100}){100}){100}){100}){100}",
    "(?:[^]a{1}]{9999}x){9999}",
    r"(?:\p{L}{1000}){1000,}",
    r"(\({1000}){1000}",
    "(?x)(a{1000}) {1000}",
    "(?ix)(a{1000})# why\n{1000}",
    "((a{1000}){1000}",
    "(?#()(a{1000}){1000}",
    "(?V1)([[a]b]{1000}){1000}",
    "(?x)a{1 0 0 0 0 0 0 0}",
    "(?i-x:(?x)a{1 0 0\n0 0 0 0 0})",
    "(?xV1)a{1 0 0 0 0 0 0 0}",
    "(?#[)a{10000000}(?#])",
    "((a{1000}(?#()){1000})",
    "(a{1000}[[:alpha:](]){10000}",
    "(?V1:((a{1000}[[a](]){1000}))",
    "[" + "acegikmoqsuwy" * 50 + "]{45000}",
]
USUAL = [
    (r"\d{4}-\d{2}-\d{2}", 10),
    (r"(\w{1,30}\s){1,20}", 2),
    ("a{0,1000000000}", 1),
    (r"[a{9}\]]{3}", 24),
    ("(ab){3}", 6),
    ("(?:(?:abc){2}d){5}", 35),
    (r"\{1000000000}", 12),
    ("a{,5}b{x}", 5),
]


@pytest.mark.parametrize("pattern", HUGE)
def test_pattern_that_would_become_huge_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidParams, match=r"^stop_strings: with the repeats of"):
        compile_patterns(["x", pattern])


@pytest.mark.parametrize(("pattern", "size"), USUAL)
def test_usual_pattern_is_about_as_large_as_it_says(pattern: str, size: int) -> None:
    assert size <= expanded_size(pattern) <= 2 * size + 10
    assert len(compile_patterns([pattern])) == 1


def test_patterns_of_one_request_count_together() -> None:
    compile_patterns(["a{9000}"] * 5)

    with pytest.raises(InvalidParams, match="written out"):
        compile_patterns(["a{9000}"] * 6)
