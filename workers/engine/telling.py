"""What requests are told of tokens: how they are spelt, and how likely they were."""

from __future__ import annotations

from collections.abc import Sequence

from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.decoder import IncrementalDecoder
from workers.contract.text_result import Alternative, TokenScore
from workers.engine.likelihood import Likelihood


class TokenTeller:
    """Tells of tokens one by one.

    Args:
        codec: the model's.
        is_raw: whether special tokens are part of the text, and tokens told as they are spelt by
            themselves.
    """

    def __init__(self, codec: TextCodec, *, is_raw: bool) -> None:
        self.codec = codec.showing_special() if is_raw else codec
        """What spells the texts whose tokens are told."""
        self._hidden_ids = codec.ignored_ids
        self._is_raw = is_raw

    def tell(
        self, token: int, text: str, likelihood: Likelihood | None, *, is_end: bool = False
    ) -> TokenScore:
        """What is told of a token.

        Args:
            token: its id.
            text: what it adds to the text.
            likelihood: None = not known, as of a text's first token, or not asked for.
            is_end: whether it ended the text, and so is special whatever it spells elsewhere.
        """
        spell = self.codec.alone if self._is_raw else self.codec.piece
        top = likelihood.top if likelihood is not None else ()
        return TokenScore(
            token=token,
            text=text,
            log_prob=None if likelihood is None else likelihood.log_prob,
            top=tuple(Alternative(id_, spell(id_), value) for id_, value in top),
            alone=self.codec.alone(token) if self._is_raw else "",
            is_special=self._is_raw and (is_end or token in self._hidden_ids),
        )

    def tell_all(
        self, tokens: Sequence[int], likelihoods: Sequence[Likelihood | None]
    ) -> tuple[TokenScore, ...]:
        """What is told of a text's tokens.

        Args:
            tokens: their ids.
            likelihoods: of the first ones; nothing is known of those behind.
        """
        decoder = IncrementalDecoder(self.codec, [])
        told = []
        for n, token in enumerate(tokens):
            n_before = len(decoder.stable_text)
            decoder.push(token)
            text = decoder.final_text() if n == len(tokens) - 1 else decoder.stable_text
            known = likelihoods[n] if n < len(likelihoods) else None
            told.append(self.tell(token, text[n_before:], known))
        return tuple(told)
