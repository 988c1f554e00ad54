"""Picture files for tests, made here."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

from PIL import Image


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """An image as a file."""
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def decoded(file: bytes) -> Image.Image:
    """A file as an image, in memory."""
    with Image.open(BytesIO(file)) as opened:
        return opened.copy()


def stripes(size: tuple[int, int] = (64, 64), kind: str = "PNG") -> bytes:
    """A picture with something in it."""
    column = Image.linear_gradient("L").resize(size)
    return encoded(Image.merge("RGB", [column, column.rotate(90).resize(size), column]), kind)


def left_half_mask(size: tuple[int, int] = (64, 64)) -> bytes:
    """A mask whose left half is fully transparent."""
    mask = Image.new("RGBA", size, (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), (0, 0, size[0] // 2, size[1]))
    return encoded(mask)


def as_base64(file: bytes) -> str:
    """A file as JSON carries it."""
    return base64.b64encode(file).decode()
