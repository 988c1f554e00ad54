"""Attention controls: how much attention the model pays to parts of a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from neodim_client.wire import Json, from_fields, given_fields


class ControlTokenOverlap(StrEnum):
    """What a control does to a token that it covers in part."""

    PARTIAL = "partial"
    """The factor counts in proportion to the part that is covered."""
    COMPLETE = "complete"
    """The factor counts in full."""


@dataclass(frozen=True)
class TextControl:
    """A control over characters of a text item.

    Args:
        start: the first character, from 0 (Unicode code points).
        length: characters.
        factor: below 1 less attention, above 1 more, 0 none, 1 changes nothing.
        token_overlap: None = the server's default, which is partial.
    """

    start: int
    length: int
    factor: float
    token_overlap: ControlTokenOverlap | None = None

    def to_json(self) -> dict[str, Any]:
        """The control as a prompt carries it."""
        return given_fields(self)

    @staticmethod
    def from_json(json: Json) -> TextControl:
        """The control that a prompt carries."""
        return from_fields(TextControl, json, token_overlap=_overlap(json))


@dataclass(frozen=True)
class TokenControl:
    """A control over one token of an item of token ids.

    Args:
        pos: the token's place in its item, from 0; `index` in JSON.
        factor: as for text.
    """

    pos: int
    factor: float

    def to_json(self) -> dict[str, Any]:
        """The control as a prompt carries it."""
        return {"index": self.pos, "factor": self.factor}

    @staticmethod
    def from_json(json: Json) -> TokenControl:
        """The control that a prompt carries."""
        return TokenControl(pos=json["index"], factor=json["factor"])


@dataclass(frozen=True)
class ImageControl:
    """A control over a rectangle of an image.

    Args:
        left, top: its corner, in parts of the whole image's width and height: 0 to 1.
        width, height: its size, in the same units.
        factor: as for text.
        token_overlap: None = the server's default, which is partial.
    """

    left: float
    top: float
    width: float
    height: float
    factor: float
    token_overlap: ControlTokenOverlap | None = None

    def to_json(self) -> dict[str, Any]:
        """The control as a prompt carries it."""
        json = given_fields(self)
        rectangle = {name: json.pop(name) for name in ("left", "top", "width", "height")}
        return {"rect": rectangle, **json}

    @staticmethod
    def from_json(json: Json) -> ImageControl:
        """The control that a prompt carries."""
        flat = {**json["rect"], **json}
        return from_fields(ImageControl, flat, token_overlap=_overlap(json))


def _overlap(json: Json) -> ControlTokenOverlap | None:
    name = json.get("token_overlap")
    return None if name is None else ControlTokenOverlap(name)
