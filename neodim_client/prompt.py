"""Prompts: a sequence of texts, token ids and images, each with controls of its own."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neodim_client.controls import ImageControl, TextControl, TokenControl
from neodim_client.wire import Json


@dataclass(frozen=True)
class Text:
    """A text.

    Args:
        text: the text.
        controls: over its characters.
    """

    text: str
    controls: Sequence[TextControl] = ()

    def to_json(self) -> dict[str, Any]:
        """The item as a prompt carries it."""
        return {"type": "text", "data": self.text, "controls": _to_json(self.controls)}

    @staticmethod
    def from_json(json: Json) -> Text:
        """The item that a prompt carries."""
        return Text(json["data"], tuple(map(TextControl.from_json, json.get("controls") or ())))


@dataclass(frozen=True)
class Tokens:
    """Tokens of the model, by number.

    Args:
        tokens: the ids.
        controls: over single tokens.
    """

    tokens: Sequence[int]
    controls: Sequence[TokenControl] = ()

    def to_json(self) -> dict[str, Any]:
        """The item as a prompt carries it."""
        controls = _to_json(self.controls)
        return {"type": "token_ids", "data": list(self.tokens), "controls": controls}

    @staticmethod
    def from_json(json: Json) -> Tokens:
        """The item that a prompt carries."""
        controls = tuple(map(TokenControl.from_json, json.get("controls") or ()))
        return Tokens(tuple(json["data"]), controls)


@dataclass(frozen=True)
class Cropping:
    """The square of an image that the model sees, in pixels.

    Args:
        upper_left_x, upper_left_y: its corner.
        size: its side.
    """

    upper_left_x: int
    upper_left_y: int
    size: int


@dataclass(frozen=True)
class Image:
    """An image.

    Args:
        base_64: the file, in base64.
        cropping: the square that counts, None = the server's choice, the middle.
        controls: over rectangles of the whole image.
    """

    base_64: str
    cropping: Cropping | None = None
    controls: Sequence[ImageControl] = ()

    @staticmethod
    def from_bytes(
        content: bytes, cropping: Cropping | None = None, controls: Sequence[ImageControl] = ()
    ) -> Image:
        """An image of a file's content."""
        return Image(base64.b64encode(content).decode(), cropping, controls)

    @staticmethod
    def from_file(
        path: str | Path,
        cropping: Cropping | None = None,
        controls: Sequence[ImageControl] = (),
    ) -> Image:
        """An image of a file.

        Raises:
            OSError: it cannot be read.
        """
        return Image.from_bytes(Path(path).read_bytes(), cropping, controls)

    def to_json(self) -> dict[str, Any]:
        """The item as a prompt carries it."""
        json: dict[str, Any] = {"type": "image", "data": self.base_64}
        if self.cropping is not None:
            json["x"] = self.cropping.upper_left_x
            json["y"] = self.cropping.upper_left_y
            json["size"] = self.cropping.size
        return {**json, "controls": _to_json(self.controls)}

    @staticmethod
    def from_json(json: Json) -> Image:
        """The item that a prompt carries."""
        is_cropped = json.get("size") is not None
        cropping = Cropping(json["x"], json["y"], json["size"]) if is_cropped else None
        controls = tuple(map(ImageControl.from_json, json.get("controls") or ()))
        return Image(json["data"], cropping, controls)


PromptItem = Text | Tokens | Image

_ITEMS: Mapping[str, type[PromptItem]] = {"text": Text, "token_ids": Tokens, "image": Image}


@dataclass(frozen=True)
class Prompt:
    """What the model goes on with.

    Args:
        items: its parts, in order.
    """

    items: Sequence[PromptItem]

    @staticmethod
    def from_text(text: str, controls: Sequence[TextControl] = ()) -> Prompt:
        """A prompt of one text; the empty one starts from nothing."""
        return Prompt((Text(text, controls),))

    @staticmethod
    def from_tokens(tokens: Sequence[int], controls: Sequence[TokenControl] = ()) -> Prompt:
        """A prompt of token ids."""
        return Prompt((Tokens(tokens, controls),))

    @staticmethod
    def from_image(image: Image) -> Prompt:
        """A prompt of one image."""
        return Prompt((image,))

    def to_json(self) -> list[dict[str, Any]]:
        """The prompt as requests carry it."""
        return [each.to_json() for each in self.items]

    @staticmethod
    def from_json(json: str | Sequence[Json]) -> Prompt:
        """The prompt that a request or an answer carries.

        Raises:
            ValueError: an item is of no known type.
        """
        if isinstance(json, str):
            return Prompt.from_text(json)
        return Prompt(tuple(map(_item, json)))


def prompt_json(prompt: Prompt) -> list[dict[str, Any]]:
    """A request's prompt as it carries it.

    Raises:
        TypeError: it is no prompt, but a text maybe.
    """
    if not isinstance(prompt, Prompt):
        kind = type(prompt).__name__
        raise TypeError(f"prompt: must be a Prompt, such as Prompt.from_text(...), not a {kind}")
    return prompt.to_json()


def _item(json: Json) -> PromptItem:
    kind = _ITEMS.get(json["type"])
    if kind is None:
        allowed = ", ".join(_ITEMS)
        raise ValueError(f"type: a prompt's items are {allowed}, not {json['type']!r}")
    return kind.from_json(json)


def _to_json(controls: Sequence[TextControl | TokenControl | ImageControl]) -> list[dict[str, Any]]:
    return [each.to_json() for each in controls]
