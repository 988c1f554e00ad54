"""What penalties count of a row's text: its prompt, what it generated, and a text beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.text_indexes import NgramIndex, TokenCounts

_BORDER = -1
"""Stands between texts, so that no run goes from one into the other; no token has this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PenaltyTokens:
    """The texts of `AdjustmentParams`, in ids of one vocabulary.

    Args:
        counted_ids: those of `counted_text`.
        exempt_ids: ids that are never penalised.
    """

    counted_ids: tuple[int, ...] = ()
    exempt_ids: frozenset[int] = frozenset()


class CountedText:
    """Which tokens a row's penalties are for, kept up token by token.

    Args:
        params: which penalties there are, and what they count.
        tokens: ids of the texts among them.
        n_vocab: size of the vocabulary; the prompt may have places that are no tokens of it.
        prompt: the prompt's ids.
        generated: the ids generated so far.
    """

    def __init__(
        self,
        params: AdjustmentParams,
        tokens: PenaltyTokens,
        n_vocab: int,
        prompt: Sequence[int],
        generated: Sequence[int],
    ) -> None:
        self._params = params
        self._exempt, self._n_vocab = tokens.exempt_ids, n_vocab
        known = list(tokens.counted_ids)
        if params.counts_prompt:
            known += prompt
        self.counts: TokenCounts | None = None
        """How often each token that may be penalised is in the counted text."""
        if params.presence_penalty or params.frequency_penalty:
            self.counts = TokenCounts(filter(self._is_penalised, known))
        self.repeats: NgramIndex | None = None
        """Which tokens would repeat a run of it."""
        if params.sequence_penalty:
            self.repeats = NgramIndex(params.sequence_min_length)
            self._start_repeats(self.repeats, tokens.counted_ids, prompt)
        for token in generated:
            self.append(token)

    def append(self, token: int) -> None:
        """Take a generated token."""
        is_counted = self._params.counts_generated and self._is_penalised(token)
        if self.counts is not None and is_counted:
            self.counts.append(token)
        if self.repeats is not None:
            # Where it is not counted, it still belongs to the end of the text that is looked up.
            self.repeats.append(token, can_repeat=is_counted)

    def _is_penalised(self, token: int) -> bool:
        return 0 <= token < self._n_vocab and token not in self._exempt

    def _start_repeats(
        self, repeats: NgramIndex, counted: Sequence[int], prompt: Sequence[int]
    ) -> None:
        for token in counted:
            repeats.append(token, can_repeat=self._is_penalised(token))
        repeats.append(_BORDER, can_repeat=False)
        for token in prompt if self._params.counts_prompt else ():
            repeats.append(token, can_repeat=self._is_penalised(token))


def counted_text(
    params: AdjustmentParams,
    tokens: PenaltyTokens,
    n_vocab: int,
    prompt: Sequence[int],
    generated: Sequence[int],
) -> CountedText | None:
    """The counted text of a row; None where it has no penalty. Arguments are `CountedText`'s."""
    if not (params.presence_penalty or params.frequency_penalty or params.sequence_penalty):
        return None
    return CountedText(params, tokens, n_vocab, prompt, generated)
