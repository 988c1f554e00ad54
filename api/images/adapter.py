"""Translates image requests into canonical jobs."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

from api.fields import shown
from api.images.schema import ImageEditSchema, ImageGenerationSchema
from api.request_schema import load as load_fields
from api.settings import Settings
from workers.contract.errors import InvalidParams, UnknownModel
from workers.contract.image_job import SIZE_STEP, ImageJob, Picture, check_side
from workers.contract.text_job import SEED_LIMIT

DEFAULT_SIDE = 512
STRENGTH_OF_EDIT, STRENGTH_IN_MASK = 0.8, 1.0

_GENERATION = ImageGenerationSchema()
_EDIT = ImageEditSchema()


def load_generation(body: Mapping[str, Any], settings: Settings) -> ImageJob:
    """The job that a request for pictures asks for; with `file` it changes that picture.

    Args:
        body: the request's JSON object.
        settings: name the model and what it may do.

    Raises:
        RequestRejected: naming the field at fault.
    """
    fields = load_fields(_GENERATION, body)
    return _job(fields, settings, _picture("file", fields["file"]), None)


def load_edit(body: Mapping[str, Any], settings: Settings) -> ImageJob:
    """The job that a request for an edit asks for.

    Args:
        body: the request's JSON object, or the fields of its form.
        settings: name the model and what it may do.

    Raises:
        RequestRejected: naming the field at fault.
    """
    fields = load_fields(_EDIT, body)
    source = Picture(field="image", body=fields["image"])
    return _job(fields, settings, source, _picture("mask", fields["mask"]))


def _picture(field: str, body: bytes) -> Picture | None:
    return Picture(field=field, body=body) if body else None


def _job(
    fields: Mapping[str, Any], settings: Settings, source: Picture | None, mask: Picture | None
) -> ImageJob:
    width, height = _size(fields, settings.image_max_size)
    seed = fields["seed"]
    if fields["n"] > settings.image_max_n:
        raise InvalidParams("n", f"must be at most {settings.image_max_n}, not {fields['n']}")
    return ImageJob(
        model=_model(fields["model"], settings),
        prompt=fields["prompt"],
        negative_prompt=fields["negative_prompt"],
        n_pictures=fields["n"],
        width=width,
        height=height,
        steps=fields["steps"],
        guidance_scale=fields["guidance_scale"],
        seed=secrets.randbelow(SEED_LIMIT) if seed is None else seed,
        source=source,
        mask=mask,
        strength=_strength(fields["strength"], source, mask),
        response_format=fields["response_format"],
        user=fields["user"],
    )


def _model(name: str | None, settings: Settings) -> str:
    """The model that is asked for, served or not; admission looks at that."""
    wanted = settings.image_model_name if name is None else name
    if wanted is None:
        raise UnknownModel("no image model is served here")
    return wanted


def _size(fields: Mapping[str, Any], most: int) -> tuple[int, int]:
    """Width and height, however they are said."""
    most -= most % SIZE_STEP
    apart = (fields["width"], fields["height"])
    if fields["size"] is None:
        return _sides(apart, most)
    found = re.fullmatch(r"(\d{1,6})x(\d{1,6})", fields["size"], re.ASCII)
    if not found:
        raise InvalidParams("size", f'must be like "512x512", not {shown(fields["size"])}')
    together = (int(found[1]), int(found[2]))
    for side in together:
        check_side("size", side, most)
    for name, side, same in zip(("width", "height"), apart, together, strict=True):
        if side not in (None, same):
            raise InvalidParams(name, f"is {side}, but size says {same}")
    return together


def _sides(apart: tuple[int | None, int | None], most: int) -> tuple[int, int]:
    width, height = apart
    if width is None and height is None:
        return (min(DEFAULT_SIDE, most),) * 2
    if width is None or height is None:
        missing, other = ("width", "height") if width is None else ("height", "width")
        raise InvalidParams(missing, f"is needed with {other}")
    check_side("width", width, most)
    check_side("height", height, most)
    return width, height


def _strength(asked: float | None, source: Picture | None, mask: Picture | None) -> float:
    if source is None:
        if asked is not None:
            raise InvalidParams("strength", "has no effect without a picture to change")
        return STRENGTH_IN_MASK
    default = STRENGTH_OF_EDIT if mask is None else STRENGTH_IN_MASK
    return default if asked is None else asked
