"""What texts can be asked to begin with: a value of these types that exists is valid.

Nothing here needs torch.
"""

from __future__ import annotations

import msgspec

from neodim_sampling.errors import InvalidParams


class PlainPrompt(msgspec.Struct, frozen=True, kw_only=True, tag="plain"):
    """A text to complete, or its token ids; never cut.

    Args:
        text: the text; the empty one is what the model reads before any text. None = `ids` counts.
        ids: at least one token id; empty = `text` counts.
        echo: whether the result tells the prompt's own tokens too.
    """

    text: str | None = None
    ids: tuple[int, ...] = ()
    echo: bool = False

    def __post_init__(self) -> None:
        """Check that there is one of both."""
        if (self.text is None) == (not self.ids):
            raise InvalidParams("prompt", "must be a string or a non-empty list of token ids")


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation, as chat templates read it.

    Args:
        role: who speaks.
        content: what is said.
        name: of the speaker; "" = not given.
        tool_call_id: which call a tool answers; "" = not given.
    """

    role: str
    content: str
    name: str = ""
    tool_call_id: str = ""


class ChatPrompt(msgspec.Struct, frozen=True, kw_only=True, tag="chat"):
    """A conversation to go on with, put into words by the model's chat template; never cut."""

    messages: tuple[ChatMessage, ...]


class PreamblePrompt(msgspec.Struct, frozen=True, kw_only=True, tag="preamble"):
    """A text to complete in two parts: one that is kept whole, one cut from its front to fit.

    Args:
        preamble: never cut.
        text: the prompt proper.
        max_total_tokens: tokens that preamble, prompt and generated text must fit in.
        truncate_until: after a cut by tokens, go on cutting until one of these was cut off.
    """

    preamble: str
    text: str
    max_total_tokens: int
    truncate_until: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that there is a text at all."""
        if not self.preamble and not self.text:
            raise InvalidParams("prompt", "prompt and preamble cannot both be empty")
