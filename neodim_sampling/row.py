"""One sequence being generated, as sampling sees it: its settings, its tokens, what it remembers.

What a step needs to know of the whole text is kept up to date token by token here, so that the
cost of a step does not grow with the text.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import torch
from torch import Tensor

from neodim_sampling.counted_text import CountedText, PenaltyTokens, counted_text
from neodim_sampling.option_index import OptionIndex
from neodim_sampling.parameters import WarperParams
from neodim_sampling.penalty_parameters import AdjustmentParams, RepetitionPenaltyParams
from neodim_sampling.text_indexes import NgramIndex, PenaltyText, SequenceIndex, TokenCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConstraints:
    """Which tokens are forbidden, in ids of one vocabulary.

    Args:
        allowed_ids: the only ids allowed; None = any.
        banned_sequences: runs of >= 1 ids that may not be completed.
        banned_first_ids: ids that may not be the first one generated.
        no_repeat_ngram_size: >= 1, no run of this many ids may occur twice; None = off.
        eos_ids: ids that end a text; may be empty.
        can_stop_early: whether such an id may be generated.
        can_be_empty: whether it may be the first one.
        banned_ids: ids that may not be generated.
        min_new_tokens: tokens before which no id of `eos_ids` may be generated.
        options: runs of >= 1 ids, one of which the text has to be; empty = any text.
        first_ids: the only ids that may be the first one; None = any.
        ends_where_stuck: whether a text ends where every id is forbidden, instead of failing.
    """

    allowed_ids: tuple[int, ...] | None = None
    banned_sequences: tuple[tuple[int, ...], ...] = ()
    banned_first_ids: frozenset[int] = frozenset()
    no_repeat_ngram_size: int | None = None
    eos_ids: frozenset[int] = frozenset()
    can_stop_early: bool = False
    can_be_empty: bool = False
    banned_ids: tuple[int, ...] = ()
    min_new_tokens: int = 0
    options: tuple[tuple[int, ...], ...] = ()
    first_ids: tuple[int, ...] | None = None
    ends_where_stuck: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSettings:
    """All that sampling has to know of a request.

    Args:
        warpers: how scores become probabilities.
        penalty: repetition penalty; None = off.
        penalty_prompt_ids: tokens of `penalty.prompt`; None = the prompt itself is penalised.
        adjustments: what is done to the scores before all else.
        penalty_tokens: the texts of `adjustments`.
        constraints: which tokens are forbidden.
        n_vocab: size of the real vocabulary; ids from here on are impossible.
    """

    warpers: WarperParams
    penalty: RepetitionPenaltyParams | None = None
    penalty_prompt_ids: tuple[int, ...] | None = None
    adjustments: AdjustmentParams = field(default_factory=AdjustmentParams)
    penalty_tokens: PenaltyTokens = field(default_factory=PenaltyTokens)
    constraints: TokenConstraints
    n_vocab: int


@dataclass(slots=True, eq=False)
class SamplingRow:
    """A sequence in the making. Only `append` changes it, and who chooses a token again.

    Args:
        settings: what was asked for.
        input_ids: tokens of preamble and prompt.
        n_preamble: how many of them are the preamble.
        seed: 0 ... 2^63 - 1.
        sequence: index of this sequence in its job.
        generated: tokens made so far, not empty when a job is resumed.
        ruled_out: tokens that may not be the next one, found out while that is chosen.
    """

    settings: RowSettings
    input_ids: list[int]
    n_preamble: int
    seed: int
    sequence: int = 0
    generated: list[int] = field(default_factory=list)
    penalty_text: PenaltyText | None = field(init=False, repr=False)
    ngrams: NgramIndex | None = field(init=False, repr=False)
    sequences: SequenceIndex | None = field(init=False, repr=False)
    counted: CountedText | None = field(init=False, repr=False)
    options: OptionIndex | None = field(init=False, repr=False)
    bias: tuple[Tensor, Tensor] | None = field(init=False, repr=False)
    allowed: Tensor | None = field(init=False, repr=False)
    allowed_first: Tensor | None = field(init=False, repr=False)
    banned: Tensor = field(init=False, repr=False)
    banned_first: Tensor = field(init=False, repr=False)
    banned_early: Tensor = field(init=False, repr=False)
    ruled_out: list[int] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        """Derive what every step looks up; id lists become int64 tensors on the CPU."""
        limits = self.settings.constraints
        size, long = limits.no_repeat_ngram_size, [s for s in limits.banned_sequences if len(s) > 1]
        text = (*self.input_ids, *self.generated)
        self.ngrams = None if size is None else NgramIndex(size, text)
        self.sequences = SequenceIndex(long) if long else None
        self.penalty_text = self._start_penalty_text()
        self.counted = self._start_counted_text()
        self.options = self._start_options()
        self.bias = _bias(self.settings.adjustments.logit_bias)
        self.allowed = None if limits.allowed_ids is None else _ids(limits.allowed_ids)
        self.allowed_first = None if limits.first_ids is None else _ids(limits.first_ids)
        singles = {s[0] for s in limits.banned_sequences if len(s) == 1} | {*limits.banned_ids}
        self.banned = _ids(singles if limits.can_stop_early else singles | limits.eos_ids)
        no_ends = frozenset() if limits.can_be_empty else limits.eos_ids
        self.banned_first = _ids(limits.banned_first_ids | no_ends)
        self.banned_early = _ids(limits.eos_ids)

    @property
    def counts(self) -> TokenCounts | None:
        """How often the tokens are there that presence and frequency penalties are for."""
        return None if self.counted is None else self.counted.counts

    @property
    def repeats(self) -> NgramIndex | None:
        """Which tokens would repeat a run that a sequence penalty is for."""
        return None if self.counted is None else self.counted.repeats

    @property
    def step(self) -> int:
        """Number of tokens generated so far, which is the index of the next one."""
        return len(self.generated)

    def append(self, token: int) -> None:
        """Add the token that was chosen."""
        self.generated.append(token)
        self.ruled_out.clear()
        if self.ngrams is not None:
            self.ngrams.append(token)
        if self.penalty_text is not None:
            self.penalty_text.append(token)
        if self.counted is not None:
            self.counted.append(token)
        if self.options is not None:
            self.options.append(token)

    def tail(self, length: int) -> tuple[int, ...]:
        """The text's last `length` (>= 1) tokens, fewer where there are not that many."""
        n_input = length - len(self.generated)
        if n_input <= 0:
            return tuple(self.generated[-length:])
        return (*self.input_ids[-n_input:], *self.generated)

    def _start_counted_text(self) -> CountedText | None:
        settings = self.settings
        return counted_text(
            settings.adjustments,
            settings.penalty_tokens,
            settings.n_vocab,
            self.input_ids,
            self.generated,
        )

    def _start_options(self) -> OptionIndex | None:
        limits = self.settings.constraints
        if not limits.options:
            return None
        return OptionIndex(limits.options, limits.min_new_tokens, self.generated)

    def _start_penalty_text(self) -> PenaltyText | None:
        penalty, override = self.settings.penalty, self.settings.penalty_prompt_ids
        if penalty is None:
            return None
        preamble = self.input_ids[: self.n_preamble] if penalty.include_preamble else []
        prompt = self.input_ids[self.n_preamble :] if override is None else override
        text = PenaltyText((*preamble, *prompt))
        for token in self.generated:
            text.append(token)
        return text


def _bias(bias: tuple[tuple[int, float], ...]) -> tuple[Tensor, Tensor] | None:
    """Ids, int64, and what is added to their scores, float64: a bias may be any number."""
    if not bias:
        return None
    ids, values = zip(*bias, strict=True)
    return torch.tensor(ids, dtype=torch.int64), torch.tensor(values, dtype=torch.float64)


def _ids(ids: Collection[int]) -> Tensor:
    return torch.tensor(sorted(ids), dtype=torch.int64)
