"""Picture files to pixels and back: the only place that decodes what clients sent.

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
EDIT, KEEP = 255, 0
"""Values of a decoded mask."""


def decode_source(picture: Picture, size: tuple[int, int]) -> Image.Image:
    """A picture to begin with: RGB of the wanted size, what is transparent on white.

    Raises:
        InvalidParams: the file is broken.
    """
    pixels = _decode(picture).convert("RGBA")
    flat = Image.new("RGBA", pixels.size, "white")
    flat.alpha_composite(pixels)
    return flat.convert("RGB").resize(size, Image.Resampling.LANCZOS)


def decode_mask(picture: Picture, size: tuple[int, int]) -> Image.Image:
    """A mask of the wanted size: `EDIT` where the file is fully transparent, else `KEEP`.

    Raises:
        InvalidParams: the file is broken, or nothing in it is fully transparent.
    """
    alpha = _decode(picture).convert("RGBA").getchannel("A")
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


def _decode(picture: Picture) -> Image.Image:
    try:
        with Image.open(BytesIO(picture.body), formats=FORMATS) as opened:
            is_as_said = opened.size == picture.size
            if is_as_said:
                opened.load()
                return _in_eight_bits(opened)
    except (*BROKEN, Image.DecompressionBombError) as error:
        raise InvalidParams(picture.field, f"cannot be decoded: {_reason(error)}") from error
    raise InvalidParams(picture.field, "cannot be decoded: it does not have the size that it says")


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
