"""One text in the making: its tokens, what they spell, and whether it has to end."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from neodim_sampling.row import SamplingRow
from neodim_sampling.text.decoder import IncrementalDecoder
from neodim_sampling.text.stops import StopChecker, StopMatch
from workers.contract.text_job import TextDelta


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a next token: one row of what a step of the model gave.

    Args:
        logits: [B, V] float32.
        row: which one.
    """

    logits: Tensor
    row: int


class Sequence:
    """One sequence of a generation; changed only by the thread that advances it.

    Args:
        row: its tokens and sampling settings.
        decoder: spells the generated tokens.
        stops: looks for text that ends it.
    """

    def __init__(self, row: SamplingRow, decoder: IncrementalDecoder, stops: StopChecker) -> None:
        self.row = row
        self.decoder = decoder
        self.match: StopMatch | None = None
        self.is_end_of_text = False
        self.slot: int | None = None
        self.n_held = 0
        """Tokens of its text that its cache row holds."""
        self.key_bias: Tensor | None = None
        """[n] numbers added to the scores that its first tokens get as keys; None = nothing."""
        self.scores: Scores | None = None
        """Those of its next token, once everything before is read."""
        self.context: list[Tensor] = []
        """Contrastive search only: hidden states [n, H] of everything read so far, in parts."""
        self._stops = stops
        self._n_held_back = 0
        self._n_sent_tokens = 0
        self._n_sent_characters = 0

    @property
    def n_cached(self) -> int:
        """Tokens that the cache holds before the newest one is read."""
        return len(self.row.input_ids) + len(self.row.generated) - 1

    @property
    def held_slot(self) -> int:
        """Its row of the cache, when it has one."""
        assert self.slot is not None, "a sequence has its row before anything is read"
        return self.slot

    @property
    def held_text(self) -> list[int]:
        """The tokens that its row holds."""
        return [*self.row.input_ids, *self.row.generated][: self.n_held]

    @property
    def is_done(self) -> bool:
        """Whether it has what it needs; it may still grow while its siblings have not."""
        return self.match is not None or self.is_end_of_text

    def accept(self, token: int) -> None:
        """Take the next token and see what it means for the text.

        Raises:
            StopPatternTimeout: a regular expression took too long on the text.
        """
        self.row.append(token)
        self.decoder.push(token)
        constraints = self.row.settings.constraints
        self.is_end_of_text = constraints.can_stop_early and token in constraints.eos_ids
        if self.match is None:
            text = self.decoder.stable_text
            self.match = self._stops.check(text)
            # Found here, since for a pattern this can take long, and `take_delta` must not.
            self._n_held_back = self._stops.held_back(text)

    def take_delta(self, *, is_last: bool) -> TextDelta | None:
        """What came since the last call; None if nothing did.

        Args:
            is_last: whether nothing will follow, so that text held back must go too.
        """
        visible = self._visible_text(is_last)
        tokens = tuple(self.row.generated[self._n_sent_tokens :])
        text = visible[self._n_sent_characters :]
        self._n_sent_tokens = len(self.row.generated)
        self._n_sent_characters = max(self._n_sent_characters, len(visible))
        if not tokens and not text:
            return None
        return TextDelta(sequence=self.row.sequence, text=text, tokens=tokens)

    def _visible_text(self, is_last: bool) -> str:
        """The text that a client may see now: without a stop, or what may become one."""
        if self.match is not None:
            return self.decoder.stable_text[: self.match.start]
        if is_last or self.is_end_of_text:
            return self.decoder.final_text()
        text = self.decoder.stable_text
        return text[: len(text) - self._n_held_back]
