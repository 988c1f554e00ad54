"""Prompts made of texts, token ids and pictures, with attention controls on their parts.

A value of these types that exists is valid. Nothing here needs torch.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec

from neodim_sampling.errors import InvalidParams

LARGEST_FACTOR = 1e30
"""Factors above count as this much, also those that come of several: they stay numbers."""


def combined(one: float, other: float) -> float:
    """The factor that two on one token make."""
    return min(min(one, LARGEST_FACTOR) * min(other, LARGEST_FACTOR), LARGEST_FACTOR)


class TextControl(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A factor for the attention that some characters of a text get.

    Args:
        start: first character, in code points.
        length: how many.
        factor: >= 0; 1 = as it is, 0 = none.
        is_complete: whether a token that the characters cover in part gets the whole factor.
    """

    start: int
    length: int
    factor: float
    is_complete: bool = False


class TokenControl(msgspec.Struct, frozen=True, kw_only=True):
    """A factor for the attention that one token of a list gets.

    Args:
        index: its place in the list.
        factor: >= 0; 1 = as it is, 0 = none.
    """

    index: int
    factor: float


class AreaControl(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A factor for the attention that a part of a picture gets.

    Args:
        left, top, width, height: of the part, as shares of the whole picture, 0 ... 1.
        factor: >= 0; 1 = as it is, 0 = none.
        is_complete: whether a tile that the part covers in part gets the whole factor.
    """

    left: float
    top: float
    width: float
    height: float
    factor: float
    is_complete: bool = False


class Crop(msgspec.Struct, frozen=True, kw_only=True):
    """The square of a picture that the model sees, in pixels.

    Args:
        x, y: its left and upper edge.
        size: length of its sides.
    """

    x: int
    y: int
    size: int


class TextItem(msgspec.Struct, frozen=True, kw_only=True, tag="text", omit_defaults=True):
    """A text; special tokens spelt in it count as such."""

    text: str
    controls: tuple[TextControl, ...] = ()

    def __post_init__(self) -> None:
        """Check that the controls lie within the text."""
        for each in self.controls:
            _check_factor(each.factor)
            if each.length < 1 or each.start < 0 or each.start + each.length > len(self.text):
                raise InvalidParams(
                    "prompt",
                    f"a control from character {each.start} on, {each.length} long, is not within "
                    f"its text of {len(self.text)} characters",
                )


class IdsItem(msgspec.Struct, frozen=True, kw_only=True, tag="token_ids", omit_defaults=True):
    """Token ids, taken as they are."""

    ids: tuple[int, ...]
    controls: tuple[TokenControl, ...] = ()

    def __post_init__(self) -> None:
        """Check that the controls are of tokens that there are."""
        for each in self.controls:
            _check_factor(each.factor)
            if not 0 <= each.index < len(self.ids):
                raise InvalidParams(
                    "prompt",
                    f"a control has the index {each.index}, and there are {len(self.ids)} ids",
                )


class ImageItem(msgspec.Struct, frozen=True, kw_only=True, tag="image", omit_defaults=True):
    """A picture.

    Args:
        picture: the file.
        crop: what of it the model sees; None = the largest square in its middle.
        controls: of its parts.
    """

    picture: bytes
    crop: Crop | None = None
    controls: tuple[AreaControl, ...] = ()

    def __post_init__(self) -> None:
        """Check that the controls are of parts that a picture can have."""
        for each in self.controls:
            _check_factor(each.factor)
            sides = ((each.left, each.width), (each.top, each.height))
            if not all(
                first >= 0 and size > 0 and first + size <= 1 + 1e-9 for first, size in sides
            ):
                raise InvalidParams(
                    "prompt", "the rectangle of a control lies between 0 and 1 and is not empty"
                )


PromptItem: TypeAlias = TextItem | IdsItem | ImageItem


class AttentionParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How attention controls act.

    Args:
        is_log_additive: whether the logarithm of a factor is added to a key's scores, which
            multiplies its weight; else the scores' distance from their lowest is multiplied.
        threshold: cosine similarity, -1 ... 1, from which on a control reaches other tokens too;
            None = none.
    """

    is_log_additive: bool = True
    threshold: float | None = None

    def __post_init__(self) -> None:
        """Check the range of a cosine."""
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise InvalidParams("contextual_control_threshold", "must be from -1 to 1")


class ItemsPrompt(msgspec.Struct, frozen=True, kw_only=True, tag="items", omit_defaults=True):
    """Items to go on with, one after the other; never cut.

    Args:
        items: without any token in them, the model reads what stands before any text.
        attention: how their controls act.
        echo: whether the result tells the prompt's own tokens too.
        is_changed: whether these are not the items that the client sent, so that it is to be told.
    """

    items: tuple[PromptItem, ...]
    attention: AttentionParams = AttentionParams()
    echo: bool = False
    is_changed: bool = False

    @property
    def has_pictures(self) -> bool:
        """Whether any item is a picture."""
        return any(isinstance(each, ImageItem) for each in self.items)


def _check_factor(factor: float) -> None:
    if not 0 <= factor < math.inf:
        raise InvalidParams("prompt", f"the factor of a control must be at least 0, not {factor}")
