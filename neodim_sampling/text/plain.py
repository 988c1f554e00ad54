"""How a prompt that is never cut becomes the tokens that the model reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompts import PlainPrompt
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.fitting import FittedPrompt


def plain_ids(codec: TextCodec, prompt: PlainPrompt, eos_ids: Collection[int]) -> Sequence[int]:
    """Token ids of a prompt; of an empty text, what the model has between texts.

    Args:
        codec: the model's.
        prompt: text or ids; special tokens spelt in a text count as such.
        eos_ids: ids that end a text of this model; may be empty.

    Raises:
        InvalidParams: an id is not in the vocabulary, or nothing stands for an empty text.
    """
    if prompt.text is None:
        if max(prompt.ids) >= codec.n_vocab or min(prompt.ids) < 0:
            raise InvalidParams("prompt", f"token ids are from 0 to {codec.n_vocab - 1}")
        return prompt.ids
    ids = codec.encode(prompt.text) or [*codec.leading_ids, *sorted(eos_ids)][:1]
    if not ids:
        raise InvalidParams("prompt", "must not be empty: this model has no token between texts")
    return ids


def whole_prompt(codec: TextCodec, ids: Sequence[int]) -> FittedPrompt:
    """A prompt of which everything is used.

    Raises:
        InvalidParams: there is nothing to read.
    """
    if not ids:
        raise InvalidParams("prompt", "there is no text to go on with")
    return FittedPrompt(
        input_ids=tuple(ids),
        n_preamble=0,
        preamble="",
        used_prompt=codec.decode(ids),
        n_original_input=len(ids),
        n_original_prompt=len(ids),
        n_used_prompt=len(ids),
    )
