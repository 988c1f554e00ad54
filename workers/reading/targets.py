"""A text behind a prompt: how likely each of its tokens is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompt_items import AttentionParams, ItemsPrompt
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.items import ReadItem, ReadPrompt, read_continuation
from workers.engine.pictures import PlacedPicture
from workers.engine.prepare import Preparer
from workers.engine.questions import Question, TextToRead


@dataclass(frozen=True, slots=True)
class Target:
    """A prompt and a text behind it, both as tokens.

    Args:
        prompt: what comes before.
        text: the text, read by itself; its places begin at 0.
        attention: how the prompt's controls act.
        pictures: of the prompt.
    """

    prompt: ReadPrompt
    text: ReadItem
    attention: AttentionParams
    pictures: Sequence[PlacedPicture]

    @property
    def n_prompt(self) -> int:
        """Tokens of the prompt."""
        return len(self.prompt.ids)

    def to_read(self, factors: Mapping[int, float], n_top: int = 0) -> TextToRead:
        """Both as one text, of which the second part's tokens are asked.

        Args:
            factors: of attention, by the place among all tokens.
            n_top: likeliest tokens to tell at each place.
        """
        return TextToRead(
            ids=(*self.prompt.ids, *self.text.ids),
            question=Question(first_told=self.n_prompt, n_top=n_top),
            factors=factors,
            attention=self.attention,
            pictures=self.pictures,
        )


def read_target(
    preparer: Preparer, codec: TextCodec, prompt: ItemsPrompt, text: str, field: str
) -> Target:
    """A text behind a prompt.

    Args:
        preparer: of the model.
        codec: of the model.
        prompt: what comes before.
        text: special tokens spelt in it count as such.
        field: the request's name for the text.

    Raises:
        InvalidParams: the text gives no token, or the prompt cannot be read.
        PromptTooLong: both do not fit in a row.
    """
    read, pictures = preparer.fitter.read_items(prompt)
    item = read_continuation(codec, text)
    if not item.ids:
        raise InvalidParams(field, "must have at least one token of this model")
    preparer.fitter.check_room(len(read.ids), len(item.ids))
    return Target(read, item, prompt.attention, pictures)
