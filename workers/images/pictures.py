"""The pictures of image jobs: sources and masks in the size that is drawn, and the files made."""

from __future__ import annotations

from io import BytesIO

from PIL import Image

from workers.contract.errors import InvalidParams
from workers.contract.image_job import Picture
from workers.picture_decoding import decode, on_white

EDIT, KEEP = 255, 0
"""Values of a decoded mask."""


def decode_source(picture: Picture, size: tuple[int, int]) -> Image.Image:
    """A picture to begin with: RGB of the wanted size, what is transparent on white.

    Raises:
        InvalidParams: the file is broken.
    """
    return on_white(decode(picture)).resize(size, Image.Resampling.LANCZOS)


def decode_mask(picture: Picture, size: tuple[int, int]) -> Image.Image:
    """A mask of the wanted size: `EDIT` where the file is fully transparent, else `KEEP`.

    Raises:
        InvalidParams: the file is broken, or nothing in it is fully transparent.
    """
    alpha = decode(picture).convert("RGBA").getchannel("A")
    mask = alpha.point([EDIT, *[KEEP] * 255])
    if mask.getextrema()[1] != EDIT:
        problem = "has no fully transparent area, so there is nothing to edit"
        raise InvalidParams(picture.field, problem)
    return mask.resize(size, Image.Resampling.NEAREST)


def encode_png(pixels: Image.Image) -> bytes:
    """A picture as a PNG file; the same pixels give the same bytes."""
    file = BytesIO()
    pixels.save(file, "PNG")
    return file.getvalue()
