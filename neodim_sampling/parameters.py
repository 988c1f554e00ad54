"""What can be asked of sampling, checked once: a value of these types that exists is valid.

`None` means "off" throughout. Field names are those of the Neodim protocol wherever it has one,
because they appear in the errors that clients read. Nothing here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from neodim_sampling.errors import InvalidParams
from neodim_sampling.ranges import check_range

WARPERS = (
    "repetition_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical",
    "tfs",
    "top_a",
    "min_p",
)
"""Every warper, in the order in which they act unless a request says otherwise."""


def resolve_order(order: tuple[str, ...]) -> tuple[str, ...]:
    """All warpers in the order that a request's list means.

    A warper stands at its first mention, an unmentioned one at the first "*", or at the end where
    there is none; warpers that share a place keep the default order (seed 000, `warpers_order`).

    Raises:
        InvalidParams: a name is neither a warper's nor "*".
    """
    for name in order:
        if name not in WARPERS and name != "*":
            raise InvalidParams(
                "warpers_order", f"{name!r} is not a warper; allowed are {', '.join(WARPERS)} and *"
            )
    unlisted = order.index("*") if "*" in order else len(order)
    places = {name: order.index(name) if name in order else unlisted for name in WARPERS}
    return tuple(sorted(WARPERS, key=places.__getitem__))


class StopKind(StrEnum):
    """How stop strings are read."""

    STRING = "string"
    REGEX = "regex"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarperParams:
    """How scores become probabilities.

    Args:
        temperature: > 0, divides the scores.
        top_k: >= 1, number of best tokens kept.
        top_p: 0 < x < 1, nucleus mass.
        typical: 0 < x < 1, mass of locally typical sampling.
        tfs: 0 < x <= 1, threshold of tail-free sampling.
        top_a: 0 < x <= 1, threshold of top-a sampling.
        min_p: 0 < x <= 1, least probability kept, as a share of the highest.
        penalty_alpha: > 0, turns on contrastive search over the `top_k` (> 1) best tokens.
        order: the request's own list of warper names and "*"; empty = default order.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    typical: float | None = None
    tfs: float | None = None
    top_a: float | None = None
    min_p: float | None = None
    penalty_alpha: float | None = None
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every range, naming the field at fault."""
        check_range("temperature", self.temperature, "above 0", low=0, low_open=True)
        check_range("top_k", self.top_k, "at least 1", low=1)
        check_range(
            "typical", self.typical, "above 0 and below 1", 0, 1, low_open=True, high_open=True
        )
        for name in ("top_p", "typical"):
            value = getattr(self, name)
            check_range(name, value, "above 0 and below 1", 0, 1, low_open=True, high_open=True)
        check_range("tfs", self.tfs, "above 0 and at most 1", 0, 1, low_open=True)
        check_range("top_a", self.top_a, "above 0 and at most 1", 0, 1, low_open=True)
        check_range("min_p", self.min_p, "above 0 and at most 1", 0, 1, low_open=True)
        check_range("penalty_alpha", self.penalty_alpha, "above 0", low=0, low_open=True)
        if self.penalty_alpha is not None and (self.top_k is None or self.top_k < 2):
            raise InvalidParams("top_k", "must be at least 2 when penalty_alpha is given")
        resolve_order(self.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintParams:
    """Which tokens are forbidden, before any warper.

    Args:
        banned_ids: token ids that may not appear.
        words_whitelist: only tokens of these words may appear; None = any.
        words_blacklist: token sequences of these words may not appear.
        words_blacklist_at_start: tokens of these words may not be the first one generated.
        no_repeat_ngram_size: >= 1, no run of this many tokens may occur twice.
        can_stop_early: whether an end-of-text token may be generated.
        can_be_empty: whether it may be the first one.
        min_new_tokens: tokens before which no end-of-text token may be generated.
        inclusions: the only texts that may be generated; empty = any.
        is_inclusion_first_only: whether they bind the first token only.
        exclusions: texts that may not appear in what is generated, however they are split.
        is_exclusion_first_only: whether they only may not begin it.
        ends_where_stuck: whether a text ends where every token is forbidden, instead of failing.
    """

    banned_ids: tuple[int, ...] = ()
    words_whitelist: tuple[str, ...] | None = None
    words_blacklist: tuple[str, ...] = ()
    words_blacklist_at_start: tuple[str, ...] = ()
    no_repeat_ngram_size: int | None = None
    can_stop_early: bool = False
    can_be_empty: bool = False
    min_new_tokens: int = 0
    inclusions: tuple[str, ...] = ()
    is_inclusion_first_only: bool = False
    exclusions: tuple[str, ...] = ()
    is_exclusion_first_only: bool = False
    ends_where_stuck: bool = False

    def __post_init__(self) -> None:
        """Check that the lists can mean something."""
        if self.words_whitelist == ():
            raise InvalidParams(
                "words_whitelist", "an empty list allows no word at all; pass null for no whitelist"
            )
        if any(not word.strip(" ") for word in self.words_blacklist):
            raise InvalidParams("words_blacklist", "a word must have more than spaces in it")
        check_range("no_repeat_ngram_size", self.no_repeat_ngram_size, "at least 1", low=1)
        check_range("minimum_tokens", self.min_new_tokens, "at least 0", low=0)
        self._check_biases()

    def _check_biases(self) -> None:
        """Refuse empty texts, and options that could be neither kept nor avoided."""
        for field, texts in (("inclusion", self.inclusions), ("exclusion", self.exclusions)):
            if not all(texts):
                raise InvalidParams(f"completion_bias_{field}", "must be non-empty strings")
        for wanted in self.inclusions:
            for other in self.exclusions:
                if wanted.startswith(other) or other.startswith(wanted):
                    problem = f"{wanted[:40]!r} and {other[:40]!r} of completion_bias_exclusion"
                    raise InvalidParams(
                        "completion_bias_inclusion", f"{problem} must not begin alike"
                    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StopParams:
    """Which generated text ends the generation.

    Args:
        strings: non-empty strings or patterns, tried in this order at every step.
        kind: how they are read.
        required_matches: >= 1, steps in a row at which a string must match before it counts.
        takes_earliest: whether of several that match at one step that counts which begins first in
            the text, not that which is first in the list; plain strings only.
        ends_each: whether a sequence ends at its own match, instead of going on until all of its
            job's sequences have one.
    """

    strings: tuple[str, ...]
    kind: StopKind = StopKind.STRING
    required_matches: int = 1
    takes_earliest: bool = False
    ends_each: bool = False

    def __post_init__(self) -> None:
        """Check that there is something to look for."""
        if not self.strings or not all(self.strings):
            raise InvalidParams("stop_strings", "must be non-empty strings")
        if self.takes_earliest and self.kind is StopKind.REGEX:
            raise InvalidParams("stop_strings", "patterns count in the order of the list")
        check_range(
            "stop_strings_required_matches_count", self.required_matches, "at least 1", low=1
        )
