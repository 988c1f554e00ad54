"""The size of a picture by its first bytes alone: nothing is decoded, so no bomb goes off.

The only place that says which picture formats are taken.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

PNG_START = b"\x89PNG\r\n\x1a\n"
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""Markers of the segments that have a JPEG's size: the frames (ITU-T T.81, table B.1)."""

_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xDA)} - {0xD9})
"""Markers without a segment behind them."""

Size = tuple[int, int]


def picture_size(body: bytes) -> Size | None:
    """Width and height that a PNG, JPEG or WebP says it has; None = it is none of these."""
    for start, read in _READERS.items():
        if body.startswith(start):
            try:
                size = read(body)
            except (struct.error, IndexError):
                return None
            return size if size is not None and min(size) > 0 else None
    return None


def is_png(body: bytes) -> bool:
    """Whether a picture says that it is a PNG."""
    return body.startswith(PNG_START)


def _png_size(body: bytes) -> Size | None:
    """PNG, 11.2.2: IHDR is the first chunk."""
    kind, width, height = struct.unpack_from(">4sII", body, 12)
    return (width, height) if kind == b"IHDR" else None


def _jpeg_size(body: bytes) -> Size | None:
    """ITU-T T.81, B.1: segments in a row, each with its length, up to the frame."""
    at = 2
    while body[at] == 0xFF:
        marker = body[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", body, at + 5)
            return width, height
        else:
            at += 2 + struct.unpack_from(">H", body, at + 2)[0]
    return None


def _webp_size(body: bytes) -> Size | None:
    """RFC 9649, 2.5 to 2.7: lossy, lossless or extended, by the first chunk."""
    kind = body[8:16]
    if kind == b"WEBPVP8X":
        width, height = (int.from_bytes(body[at : at + 3], "little") + 1 for at in (24, 27))
        return (width, height) if len(body) >= 30 else None
    if kind == b"WEBPVP8L":
        bits = struct.unpack_from("<I", body, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"WEBPVP8 ":
        width, height = struct.unpack_from("<HH", body, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_READERS: Mapping[bytes, Callable[[bytes], Size | None]] = {
    PNG_START: _png_size,
    b"\xff\xd8": _jpeg_size,
    b"RIFF": _webp_size,
}
