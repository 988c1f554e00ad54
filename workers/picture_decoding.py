"""Picture files to pixels: the only place that decodes what clients sent.

Their size was checked by their first bytes when the job was made, so nothing here is too large.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from workers.contract.errors import InvalidParams
from workers.contract.image_job import Picture

FORMATS = ("PNG", "JPEG", "WEBP")
BROKEN = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error, zlib.error)
"""What Pillow 13 raises for a file that is cut or damaged."""

GREY_OF_8_BITS, GREY_OF_16_BITS = 255, 65535

ORIENTATION = 0x0112
"""EXIF 2.32, 4.6.4: how the stored pixels are to be turned to be looked at."""

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode(picture: Picture, *, is_upright: bool = False) -> Image.Image:
    """The pixels of a picture, 8 bits a channel.

    Args:
        picture: the file.
        is_upright: whether to turn the pixels as the file says that they are to be looked at.

    Raises:
        InvalidParams: the file is broken.
    """
    try:
        with Image.open(BytesIO(picture.body), formats=FORMATS) as opened:
            is_as_said = opened.size == picture.size
            if is_as_said:
                opened.load()
                turn = _turn(opened) if is_upright else None
                pixels = _in_eight_bits(opened)
                return pixels if turn is None else pixels.transpose(turn)
    except (*BROKEN, Image.DecompressionBombError) as error:
        raise InvalidParams(picture.field, f"cannot be decoded: {_reason(error)}") from error
    raise InvalidParams(picture.field, "cannot be decoded: it does not have the size that it says")


def on_white(pixels: Image.Image) -> Image.Image:
    """RGB, with white behind what is transparent."""
    layered = pixels.convert("RGBA")
    flat = Image.new("RGBA", layered.size, "white")
    flat.alpha_composite(layered)
    return flat.convert("RGB")


def _turn(opened: Image.Image) -> Image.Transpose | None:
    """How to turn the pixels; damaged EXIF data leave the picture as it is."""
    try:
        return _TURNS.get(opened.getexif().get(ORIENTATION) or 0)
    except BROKEN:
        return None


def _in_eight_bits(pixels: Image.Image) -> Image.Image:
    """A copy whose greys have 8 bits: Pillow would cut those of 16 off instead of scaling them."""
    if not pixels.mode.startswith("I"):
        return pixels.copy()
    greys = np.asarray(pixels).astype(np.float64) / GREY_OF_16_BITS * GREY_OF_8_BITS
    return Image.fromarray(greys.round().clip(0, GREY_OF_8_BITS).astype(np.uint8))


def _reason(error: Exception) -> str:
    """Why a file cannot be decoded; Pillow's words may name an object in memory."""
    if isinstance(error, UnidentifiedImageError):
        return "it is not what its first bytes say"
    return str(error)
