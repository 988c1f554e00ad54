"""What a model sees of a picture: a square part of it, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from neodim_sampling.prompt_items import Crop, ImageItem
from neodim_sampling.text.tiles import Area
from workers.contract.errors import InvalidParams
from workers.contract.image_job import Picture
from workers.picture_decoding import decode, on_white

FIELD = "prompt"
"""Where clients put such pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eyesight:
    """How a model wants its pictures, all RGB.

    Args:
        side: pixels in each row, and in each column.
        resampling: how pictures are made that large.
        scale: a pixel's 0 ... 255 are multiplied with this first.
        mean: of red, green and blue, taken off then.
        deviation: of the same, divided by at last.
    """

    side: int
    resampling: Image.Resampling
    scale: float
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class VisibleSquare:
    """The part of a picture that a model sees.

    Args:
        area: where it is.
        pixels: [side, side, 3] uint8, in the size that the model wants.
    """

    area: Area
    pixels: npt.NDArray[np.uint8]


def visible_square(item: ImageItem, eyesight: Eyesight) -> VisibleSquare:
    """Decode a picture, turn it as it is to be looked at, and cut its visible square out.

    Raises:
        InvalidParams: the file is no picture, or the crop lies outside of it.
    """
    pixels = on_white(decode(Picture(field=FIELD, body=item.picture), is_upright=True))
    width, height = pixels.size
    crop = item.crop or _middle(width, height)
    if min(crop.x, crop.y) < 0 or crop.size < 1 or not _is_within(crop, width, height):
        raise InvalidParams(
            FIELD,
            f"the crop of {crop.size} pixels from x {crop.x} and y {crop.y} on is not within its "
            f"picture of {width}x{height}",
        )
    part = pixels.crop((crop.x, crop.y, crop.x + crop.size, crop.y + crop.size))
    sized = part.resize((eyesight.side, eyesight.side), eyesight.resampling)
    area = Area(crop.x / width, crop.y / height, crop.size / width, crop.size / height)
    return VisibleSquare(area, np.asarray(sized))


def normalised(pixels: npt.NDArray[np.uint8], eyesight: Eyesight) -> npt.NDArray[np.float32]:
    """[3, side, side], what the model computes with, of [side, side, 3]."""
    scaled = pixels.astype(np.float32) * np.float32(eyesight.scale)
    mean = np.array(eyesight.mean, dtype=np.float32)
    deviation = np.array(eyesight.deviation, dtype=np.float32)
    return np.ascontiguousarray(((scaled - mean) / deviation).transpose(2, 0, 1))


def _middle(width: int, height: int) -> Crop:
    """The largest square in the middle."""
    side = min(width, height)
    return Crop(x=(width - side) // 2, y=(height - side) // 2, size=side)


def _is_within(crop: Crop, width: int, height: int) -> bool:
    return crop.x + crop.size <= width and crop.y + crop.size <= height
