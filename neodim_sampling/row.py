"""One sequence being generated, as sampling sees it: its settings, its tokens, what it remembers.

What a step needs to know of the whole text is kept up to date token by token here, so that the
cost of a step does not grow with the text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from neodim_sampling.parameters import AdditiveParams, RepetitionPenaltyParams, WarperParams

_NEVER = 2**62
_GROWTH = 64


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
    """

    allowed_ids: tuple[int, ...] | None = None
    banned_sequences: tuple[tuple[int, ...], ...] = ()
    banned_first_ids: frozenset[int] = frozenset()
    no_repeat_ngram_size: int | None = None
    eos_ids: frozenset[int] = frozenset()
    can_stop_early: bool = False
    can_be_empty: bool = False
    banned_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSettings:
    """All that sampling has to know of a request.

    Args:
        warpers: how scores become probabilities.
        penalty: repetition penalty; None = off.
        penalty_prompt_ids: tokens of `penalty.prompt`; None = the prompt itself is penalised.
        additive: what is added to the scores.
        constraints: which tokens are forbidden.
        n_vocab: size of the real vocabulary; ids from here on are impossible.
    """

    warpers: WarperParams
    penalty: RepetitionPenaltyParams | None = None
    penalty_prompt_ids: tuple[int, ...] | None = None
    additive: AdditiveParams = field(default_factory=AdditiveParams)
    constraints: TokenConstraints
    n_vocab: int


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
    """How often each token was generated, as the next step's penalties need it.

    `ids[:length]` are the distinct tokens, int64, and `counts[:length]` how often they came,
    float32; both on the CPU.
    """

    __slots__ = ("_places", "counts", "ids", "length")

    def __init__(self, tokens: Iterable[int]) -> None:
        self._places: dict[int, int] = {}
        self.length = 0
        self.ids = torch.zeros(_GROWTH, dtype=torch.int64)
        self.counts = torch.zeros(_GROWTH)
        for token in tokens:
            self.append(token)

    def append(self, token: int) -> None:
        """Count a generated token."""
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

    def __init__(self, n: int, text: Iterable[int]) -> None:
        self._n_context = n - 1
        n_levels = max(1, self._n_context.bit_length())
        self._names: list[list[int]] = [[] for _ in range(n_levels)]
        self._ids: dict[tuple[int, int, int], int] = {}
        self._followers: dict[tuple[int, int], set[int]] = {}
        for token in text:
            self.append(token)

    def append(self, token: int) -> None:
        """Add the text's next token."""
        context = self._context()
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

    def completions(self, row: SamplingRow) -> list[int]:
        """The ids that would complete a sequence if they came next; may repeat."""
        found: list[int] = []
        last = row.tail(1)
        for length, by_beginning in self._endings.get(last[0], {}).items() if last else ():
            found += by_beginning.get(row.tail(length), ())
        return found


@dataclass(slots=True, eq=False)
class SamplingRow:
    """A sequence in the making. Only `append` changes it.

    Args:
        settings: what was asked for.
        input_ids: tokens of preamble and prompt.
        n_preamble: how many of them are the preamble.
        seed: 0 ... 2^63 - 1.
        sequence: index of this sequence in its job.
        generated: tokens made so far, not empty when a job is resumed.
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
    counts: TokenCounts | None = field(init=False, repr=False)
    bias: tuple[Tensor, Tensor] | None = field(init=False, repr=False)
    allowed: Tensor | None = field(init=False, repr=False)
    banned: Tensor = field(init=False, repr=False)
    banned_first: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Derive what every step looks up; id lists become int64 tensors on the CPU."""
        limits = self.settings.constraints
        size, long = limits.no_repeat_ngram_size, [s for s in limits.banned_sequences if len(s) > 1]
        text = (*self.input_ids, *self.generated)
        self.ngrams = None if size is None else NgramIndex(size, text)
        self.sequences = SequenceIndex(long) if long else None
        self.penalty_text = self._start_penalty_text()
        additive = self.settings.additive
        is_counted = bool(additive.presence_penalty or additive.frequency_penalty)
        self.counts = TokenCounts(self.generated) if is_counted else None
        self.bias = _bias(additive.logit_bias)
        self.allowed = None if limits.allowed_ids is None else _ids(limits.allowed_ids)
        singles = {s[0] for s in limits.banned_sequences if len(s) == 1} | {*limits.banned_ids}
        self.banned = _ids(singles if limits.can_stop_early else singles | limits.eos_ids)
        no_ends = frozenset() if limits.can_be_empty else limits.eos_ids
        self.banned_first = _ids(limits.banned_first_ids | no_ends)

    @property
    def step(self) -> int:
        """Number of tokens generated so far, which is the index of the next one."""
        return len(self.generated)

    def append(self, token: int) -> None:
        """Add the token that was chosen."""
        self.generated.append(token)
        if self.ngrams is not None:
            self.ngrams.append(token)
        if self.penalty_text is not None:
            self.penalty_text.append(token)
        if self.counts is not None:
            self.counts.append(token)

    def tail(self, length: int) -> tuple[int, ...]:
        """The text's last `length` (>= 1) tokens, fewer where there are not that many."""
        n_input = length - len(self.generated)
        if n_input <= 0:
            return tuple(self.generated[-length:])
        return (*self.input_ids[-n_input:], *self.generated)

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
    """Ids, int64, and what is added to their scores, float32."""
    if not bias:
        return None
    ids, values = zip(*bias, strict=True)
    return torch.tensor(ids, dtype=torch.int64), torch.tensor(values, dtype=torch.float32)


def _ids(ids: Collection[int]) -> Tensor:
    return torch.tensor(sorted(ids), dtype=torch.int64)
