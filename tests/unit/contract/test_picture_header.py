"""Sizes read from first bytes are those that a decoder finds, and nothing else has one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from picture_files import encoded
from PIL import Image

from workers.contract.picture_header import is_png, picture_size

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("PNG", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True, "exif": b"Exif\0\0" + b"x" * 300}),
    ("WEBP", {}),
    ("WEBP", {"lossless": True}),
    ("WEBP", {"exif": b"Exif\0\0" + b"x" * 300}),
]


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("size", [(1, 1), (300, 7), (5, 2000)])
def test_size_is_that_of_the_picture(
    kind: str, options: dict[str, Any], size: tuple[int, int]
) -> None:
    file = encoded(Image.new("RGB", size, "red"), kind, **options)

    assert picture_size(file) == size
    assert is_png(file) == (kind == "PNG")


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_file_that_is_cut_before_its_size_has_none(kind: str, options: dict[str, Any]) -> None:
    file = encoded(Image.new("RGB", (70, 80)), kind, **options)

    sizes = {picture_size(file[:n]) for n in range(len(file))}

    assert sizes <= {None, (70, 80)}
    assert picture_size(file[:20]) is None


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF"])
def test_other_kinds_have_no_size(kind: str) -> None:
    assert picture_size(encoded(Image.new("RGB", (8, 8)), kind)) is None


def test_a_picture_without_pixels_has_no_size() -> None:
    file = encoded(Image.new("RGB", (8, 8)))

    assert picture_size(file[:16] + bytes(4) + file[20:]) is None


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"RIFF....WEBPVP8 ", b"RIFF....WEBPVP8L"]),
    st.binary(max_size=80),
)
def test_no_bytes_break_it(start: bytes, rest: bytes) -> None:
    size = picture_size(start + rest)

    assert size is None or min(size) > 0
