"""The only place that decides whether a token would make an excluded text appear."""

from __future__ import annotations

from collections.abc import Sequence

from neodim_sampling.row import SamplingRow
from neodim_sampling.text.automaton import string_automaton
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.decoder import UNFINISHED, IncrementalDecoder


class ExcludedTexts:
    """Texts that may not appear in what one sequence generates, however they are split.

    An excluded text may begin in a token and end in a later one, so that whether a token may come
    depends on the text before it. Special tokens have no text and are never held back here. An
    unfinished character counts once it is certain.

    Args:
        codec: the model's, which shows no special tokens.
        texts: >= 1, none of them empty.
        context_ids: tokens before the generated ones; a text that begins there does not count.
    """

    def __init__(self, codec: TextCodec, texts: Sequence[str], context_ids: Sequence[int]) -> None:
        self._texts = tuple(dict.fromkeys(texts))
        self._automaton = string_automaton(self._texts)
        self._decoder = IncrementalDecoder(codec, context_ids)
        self._state = 0
        self._n_read = 0
        self._found_in: dict[int, bool] = {}

    def push(self, token: int) -> None:
        """Take the token that came."""
        self._decoder.push(token)
        text = self._decoder.stable_text
        for character in text[self._n_read :]:
            self._state = self._automaton.step(self._state, character)
        self._n_read = len(text)

    def rule_out(self, row: SamplingRow, tokens: Sequence[int]) -> bool:
        """Forbid those of some tokens with which an excluded text would appear now.

        Args:
            row: the sequence's own.
            tokens: ids.

        Returns:
            Whether there were any.
        """
        found = [token for token in tokens if self._appears_with(token)]
        row.ruled_out += found
        return bool(found)

    def _appears_with(self, token: int) -> bool:
        if token in self._decoder.codec.ignored_ids:
            return False
        if self._is_in(token):
            return True
        # Also what a later byte might yet turn into something else: the text may end here.
        text = self._decoder.behind(token).final_text().rstrip(UNFINISHED)
        state = self._state
        for character in text[self._n_read :]:
            state = self._automaton.step(state, character)
            if self._automaton.found[state]:
                return True
        return False

    def _is_in(self, token: int) -> bool:
        """Whether such a text is in the token wherever it comes: at the start of a line or not."""
        if token not in self._found_in:
            codec = self._decoder.codec
            spelt = (codec.decode([token]), codec.piece(token))
            certain = [each.strip(UNFINISHED) for each in spelt]
            self._found_in[token] = any(
                all(text in each for each in certain) for text in self._texts
            )
        return self._found_in[token]
