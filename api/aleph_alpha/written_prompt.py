"""Writes a prompt's items as requests have them, with all their fields filled in."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from api.aleph_alpha.prompt import TokenOverlap
from neodim_sampling.prompt_items import (
    AreaControl,
    IdsItem,
    ImageItem,
    PromptItem,
    TextControl,
    TextItem,
)


def write_prompt(items: Sequence[PromptItem]) -> list[dict[str, Any]]:
    """A prompt as JSON."""
    return [_item(each) for each in items]


def _item(item: PromptItem) -> dict[str, Any]:
    if isinstance(item, TextItem):
        controls = [_text_control(each) for each in item.controls]
        return {"type": "text", "data": item.text, "controls": controls}
    if isinstance(item, IdsItem):
        factors = [{"index": each.index, "factor": each.factor} for each in item.controls]
        return {"type": "token_ids", "data": list(item.ids), "controls": factors}
    return _image(item)


def _image(item: ImageItem) -> dict[str, Any]:
    """A picture: the client's own file, so that the crop goes on being needed."""
    crop = item.crop
    return {
        "type": "image",
        "data": base64.b64encode(item.picture).decode(),
        "x": None if crop is None else crop.x,
        "y": None if crop is None else crop.y,
        "size": None if crop is None else crop.size,
        "controls": [_area_control(each) for each in item.controls],
    }


def _text_control(control: TextControl) -> dict[str, Any]:
    return {
        "start": control.start,
        "length": control.length,
        "factor": control.factor,
        "token_overlap": _overlap(is_complete=control.is_complete),
    }


def _area_control(control: AreaControl) -> dict[str, Any]:
    sides = ("left", "top", "width", "height")
    return {
        "rect": {side: getattr(control, side) for side in sides},
        "factor": control.factor,
        "token_overlap": _overlap(is_complete=control.is_complete),
    }


def _overlap(*, is_complete: bool) -> str:
    return (TokenOverlap.COMPLETE if is_complete else TokenOverlap.PARTIAL).value
