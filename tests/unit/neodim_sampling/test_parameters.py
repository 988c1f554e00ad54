"""Parameters are valid by construction, and say which field is not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from neodim_sampling.errors import InvalidParams
from neodim_sampling.parameters import (
    WARPERS,
    ConstraintParams,
    StopKind,
    StopParams,
    WarperParams,
    resolve_order,
)
from neodim_sampling.penalty_parameters import AdjustmentParams, RepetitionPenaltyParams
from neodim_sampling.prompts import PlainPrompt, PreamblePrompt

HUGE = 10**400


@pytest.mark.parametrize(
    ("order", "resolved"),
    [
        ((), WARPERS),
        (("*",), WARPERS),
        (
            ("tfs", "*", "temperature"),
            (
                "tfs",
                "repetition_penalty",
                "top_k",
                "top_p",
                "typical",
                "top_a",
                "min_p",
                "temperature",
            ),
        ),
        (
            ("typical",),
            ("typical", *(name for name in WARPERS if name != "typical")),
        ),
        (
            ("top_a", "top_a", "*", "tfs", "top_a"),
            ("top_a", *(name for name in WARPERS if name not in ("top_a", "tfs")), "tfs"),
        ),
    ],
    ids=str,
)
def test_order_is_resolved_by_first_mentions(
    order: tuple[str, ...], resolved: tuple[str, ...]
) -> None:
    assert resolve_order(order) == resolved


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0),
        ("temperature", -1.0),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_k", 0),
        ("top_k", -HUGE),
        ("top_p", 0),
        ("top_p", 1),
        ("typical", 1.0),
        ("tfs", 1.1),
        ("top_a", -0.1),
        ("min_p", 0),
        ("min_p", 1.1),
    ],
)
def test_warper_out_of_its_range_is_named(field: str, value: float) -> None:
    with pytest.raises(InvalidParams, match=f"^{field}: must be ") as caught:
        WarperParams(**{field: value})

    assert caught.value.field == field


@pytest.mark.parametrize("field", ["tfs", "top_a", "min_p"])
def test_thresholds_may_be_one(field: str) -> None:
    assert getattr(WarperParams(**{field: 1.0}), field) == 1.0


def test_whole_numbers_may_be_larger_than_any_float() -> None:
    assert WarperParams(top_k=HUGE).top_k == HUGE


@pytest.mark.parametrize("top_k", [None, 1])
def test_contrastive_search_needs_several_candidates(top_k: int | None) -> None:
    with pytest.raises(InvalidParams, match=r"^top_k: must be at least 2 when penalty_alpha"):
        WarperParams(penalty_alpha=0.5, top_k=top_k)


def test_unknown_warper_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidParams, match=r"^warpers_order: 'nope' .* temperature, .* \*$"):
        WarperParams(order=("top_k", "nope"))


@pytest.mark.parametrize(
    "params",
    [{"penalty": 0}, {"penalty": 1, "range_tokens": 0}, {"penalty": 1, "slope": -1}],
    ids=str,
)
def test_penalty_out_of_its_range_is_named(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match=r"^repetition_penalty"):
        RepetitionPenaltyParams(**params)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"words_whitelist": ()}, "words_whitelist"),
        ({"words_blacklist": ("",)}, "words_blacklist"),
        ({"words_blacklist": ("a", "  ")}, "words_blacklist"),
        ({"no_repeat_ngram_size": 0}, "no_repeat_ngram_size"),
    ],
    ids=str,
)
def test_constraints_that_can_mean_nothing_are_named(params: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidParams, match=f"^{field}: "):
        ConstraintParams(**params)


@pytest.mark.parametrize("strings", [(), ("a", "")])
def test_stop_strings_are_not_empty(strings: tuple[str, ...]) -> None:
    with pytest.raises(InvalidParams, match=r"^stop_strings: "):
        StopParams(strings=strings)


def test_prompt_has_a_text() -> None:
    with pytest.raises(InvalidParams, match=r"^prompt: "):
        PreamblePrompt(preamble="", text="", max_total_tokens=9)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"presence_penalty": math.nan}, "presence_penalty"),
        ({"frequency_penalty": math.inf}, "frequency_penalty"),
        ({"logit_bias": ((-1, 1.0),)}, "logit_bias"),
        ({"logit_bias": ((1, -math.inf),)}, "logit_bias"),
    ],
    ids=str,
)
def test_what_is_added_to_scores_is_a_number(params: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidParams, match=f"^{field}: "):
        AdjustmentParams(**params)


@pytest.mark.parametrize("fields", [{}, {"text": "a", "ids": (1,)}, {"ids": ()}], ids=str)
def test_plain_prompt_is_either_a_text_or_ids(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match=r"^prompt: "):
        PlainPrompt(**fields)


def test_plain_prompt_may_be_the_empty_text() -> None:
    assert PlainPrompt(text="").text == ""


def test_patterns_have_no_earliest_match() -> None:
    with pytest.raises(InvalidParams, match=r"^stop_strings: "):
        StopParams(strings=("a",), kind=StopKind.REGEX, takes_earliest=True)
