"""Turns conversations into text by the model's chat template; the only place that runs one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jinja2
import msgspec

from neodim_sampling.prompts import ChatMessage
from neodim_sampling.text.codec import TextCodec
from workers.contract.errors import TemplateRefused

PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
"""For models that bring no template: a line a message."""

_FAILURES = (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    RecursionError,
)
"""How a template fails: on purpose, or because the messages are not what it counts on."""

MAX_SHOWN = 300
"""Characters of a template's own words in an error text."""


class ChatTemplate:
    """The chat template of one model.

    Args:
        tokenizer: of the transformers library; may bring a template.
        codec: the model's.
        template: text of one to use instead; None = the tokenizer's, else the plain one.
    """

    def __init__(self, tokenizer: Any, codec: TextCodec, template: str | None = None) -> None:
        self._tokenizer = tokenizer
        self._codec = codec
        self._template = template or tokenizer.chat_template or PLAIN_TEMPLATE
        # Templates of models write the tokens that a text begins with themselves.
        is_plain = self._template is PLAIN_TEMPLATE
        self._beginning = "".join(map(codec.piece, codec.leading_ids)) if is_plain else ""

    def render(self, messages: Sequence[ChatMessage]) -> str:
        """The text that a model goes on with as the assistant.

        Special tokens within messages, names included, are removed: a client cannot end its own
        turn with them.

        Raises:
            TemplateRefused: the template does not take these messages.
        """
        try:
            text: str = self._tokenizer.apply_chat_template(
                [self._clean(each) for each in messages],
                chat_template=self._template,
                tokenize=False,
                add_generation_prompt=True,
            )
        except _FAILURES as error:
            words = " ".join(str(error).split())[:MAX_SHOWN]
            raise TemplateRefused(f"messages: the chat template refuses them: {words}") from error
        if not text:
            raise TemplateRefused("messages: the chat template makes no text of them")
        return self._beginning + text

    def _clean(self, message: ChatMessage) -> dict[str, str]:
        fields: dict[str, str] = msgspec.to_builtins(message)
        return {name: self._codec.strip_special(value) for name, value in fields.items()}
