"""The prompt as this protocol's requests have it: a text, or a list of items with controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from marshmallow import Schema, ValidationError, fields

from api.aleph_alpha.open_schema import OpenSchema
from api.fields import REQUIRED, Choice, Number, Text, Whole, shown
from api.picture_field import PictureFile
from api.request_schema import load
from neodim_sampling.prompt_items import (
    AreaControl,
    Crop,
    IdsItem,
    ImageItem,
    PromptItem,
    TextControl,
    TextItem,
    TokenControl,
)
from workers.contract.errors import InvalidParams
from workers.contract.image_job import Picture

MAX_ITEMS = 10_000
"""Most items of one prompt, and most controls of one item."""


class PromptItems(fields.Field[tuple[PromptItem, ...]]):
    """A string, or a list of texts, token ids and pictures."""

    default_error_messages = REQUIRED

    def _deserialize(
        self, value: Any, attr: Any, data: Any, **kwargs: Any
    ) -> tuple[PromptItem, ...]:
        if isinstance(value, str):
            return (TextItem(text=value),)
        if not isinstance(value, list):
            raise ValidationError(f"must be a string or a list of items, not {shown(value)}")
        if len(value) > MAX_ITEMS:
            raise ValidationError(f"must have at most {MAX_ITEMS} items, not {len(value)}")
        return tuple(_item(f"item {n}", each) for n, each in enumerate(value))


class TokenOverlap(StrEnum):
    """What a control does to a token or tile that it covers in part."""

    PARTIAL = "partial"
    COMPLETE = "complete"


class TokenIds(fields.Field[tuple[int, ...]]):
    """Token ids; whether the model has them is for its worker to say."""

    default_error_messages = REQUIRED

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> tuple[int, ...]:
        if not isinstance(value, list):
            raise ValidationError(f"must be a list of token ids, not {shown(value)}")
        field = Whole(low=0)
        return tuple(field.deserialize(each) or 0 for each in value)


class _Controls(fields.Field[tuple[dict[str, Any], ...]]):
    """The fields of each control of an item."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(load_default=())
        self._schema = schema

    def _deserialize(
        self, value: Any, attr: Any, data: Any, **kwargs: Any
    ) -> tuple[dict[str, Any], ...]:
        if not isinstance(value, list) or len(value) > MAX_ITEMS:
            raise ValidationError(f"must be a list of at most {MAX_ITEMS}, not {shown(value)}")
        return tuple(_fields(f"entry {n}", self._schema, each) for n, each in enumerate(value))


class _Area(fields.Field[dict[str, float]]):
    """The rectangle of a control of a picture."""

    default_error_messages = REQUIRED

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> dict[str, float]:
        return _fields("", _AreaSchema(), value)


class _AreaSchema(OpenSchema):
    left = Number(required=True)
    top = Number(required=True)
    width = Number(required=True)
    height = Number(required=True)


class _TokenControlSchema(OpenSchema):
    index = Whole(required=True)
    factor = Number(required=True)


class _TextControlSchema(OpenSchema):
    start = Whole(required=True)
    length = Whole(required=True)
    factor = Number(required=True)
    token_overlap = Choice(TokenOverlap, load_default=TokenOverlap.PARTIAL)


class _AreaControlSchema(OpenSchema):
    rect = _Area(required=True)
    factor = Number(required=True)
    token_overlap = Choice(TokenOverlap, load_default=TokenOverlap.PARTIAL)


class _TextSchema(OpenSchema):
    data = Text(required=True)
    controls = _Controls(_TextControlSchema())


class _IdsSchema(OpenSchema):
    data = TokenIds(required=True)
    controls = _Controls(_TokenControlSchema())


class _ImageSchema(OpenSchema):
    data = PictureFile(required=True)
    x = Whole(load_default=None, low=0)
    y = Whole(load_default=None, low=0)
    size = Whole(load_default=None, low=1)
    controls = _Controls(_AreaControlSchema())


def _text_item(read: Mapping[str, Any]) -> TextItem:
    controls = (
        TextControl(
            start=each["start"],
            length=each["length"],
            factor=each["factor"],
            is_complete=_is_complete(each),
        )
        for each in read["controls"]
    )
    return TextItem(text=read["data"], controls=tuple(controls))


def _ids_item(read: Mapping[str, Any]) -> IdsItem:
    controls = (
        TokenControl(index=each["index"], factor=each["factor"]) for each in read["controls"]
    )
    return IdsItem(ids=read["data"], controls=tuple(controls))


def _image_item(read: Mapping[str, Any]) -> ImageItem:
    picture = Picture(field="data", body=read["data"])
    controls = (
        AreaControl(**each["rect"], factor=each["factor"], is_complete=_is_complete(each))
        for each in read["controls"]
    )
    return ImageItem(picture=picture.body, crop=_crop(picture, read), controls=tuple(controls))


_KINDS: Mapping[str, tuple[Schema, Callable[[Mapping[str, Any]], PromptItem]]] = {
    "text": (_TextSchema(), _text_item),
    "token_ids": (_IdsSchema(), _ids_item),
    "image": (_ImageSchema(), _image_item),
}


def _item(place: str, value: Any) -> PromptItem:
    if not isinstance(value, dict):
        raise ValidationError(f"{place} must be an object with type and data, not {shown(value)}")
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        allowed = ", ".join(f'"{each}"' for each in _KINDS)
        raise ValidationError(f"{place}: type must be one of {allowed}, not {shown(kind)}")
    schema, make = _KINDS[kind]
    try:
        return make(_fields(place, schema, value))
    except InvalidParams as error:
        # The prompt's own name stands in front already.
        named = error.problem if error.field == "prompt" else str(error)
        raise ValidationError(f"{place}: {named}") from None


def _fields(place: str, schema: Schema, value: Any) -> dict[str, Any]:
    """The fields of an object within the prompt; errors say where it stands."""
    if not isinstance(value, dict):
        raise ValidationError(f"{place} must be an object, not {shown(value)}".lstrip())
    try:
        return load(schema, value)
    except InvalidParams as error:
        raise ValidationError(f"{place}: {error}" if place else str(error)) from None


def _is_complete(control: Mapping[str, Any]) -> bool:
    return control["token_overlap"] is TokenOverlap.COMPLETE


def _crop(picture: Picture, read: Mapping[str, Any]) -> Crop | None:
    x, y, size = (read[name] for name in ("x", "y", "size"))
    if x is None and y is None and size is None:
        return None
    if x is None or y is None or size is None:
        raise InvalidParams("x", "is needed together with y and size, for a crop")
    width, height = picture.size
    # Where the file says that it is to be looked at sideways, which only a worker can see, they
    # are the other way round.
    if not any(x + size <= w and y + size <= h for w, h in ((width, height), (height, width))):
        problem = f"the square from {x}, {y} on, {size} wide, is not within {width} x {height}"
        raise InvalidParams("size", f"{problem} pixels")
    return Crop(x=x, y=y, size=size)
