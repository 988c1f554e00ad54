"""What a model sees of a picture file."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from picture_files import decoded, encoded, stripes
from PIL import Image

from neodim_sampling.prompt_items import Crop, ImageItem
from neodim_sampling.text.tiles import Area
from workers.contract.errors import InvalidParams
from workers.models.visible_square import Eyesight, VisibleSquare, normalised, visible_square

pytestmark = pytest.mark.model

SIDE = 8
EYESIGHT = Eyesight(
    side=SIDE,
    resampling=Image.Resampling.BICUBIC,
    scale=1 / 255,
    mean=(0.5, 0.25, 0.0),
    deviation=(0.5, 1.0, 2.0),
)
RED, BLUE, WHITE = (255, 0, 0), (0, 0, 255), (255, 255, 255)


def seen(file: bytes, crop: Crop | None = None) -> VisibleSquare:
    return visible_square(ImageItem(picture=file, crop=crop), EYESIGHT)


def halves(size: tuple[int, int]) -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (size[0] // 2, 0, *size))
    return image


@pytest.mark.parametrize(
    ("size", "area"),
    [
        ((60, 40), Area(10 / 60, 0.0, 40 / 60, 1.0)),
        ((40, 100), Area(0.0, 0.3, 1.0, 0.4)),
        ((41, 40), Area(0.0, 0.0, 40 / 41, 1.0)),
        ((7, 7), Area(0.0, 0.0, 1.0, 1.0)),
    ],
)
def test_without_a_crop_the_largest_square_in_the_middle_is_seen(
    size: tuple[int, int], area: Area
) -> None:
    square = seen(stripes(size))

    assert square.area == area
    assert square.pixels.shape == (SIDE, SIDE, 3)


def test_crop_is_what_is_seen() -> None:
    square = seen(encoded(halves((60, 40))), Crop(x=30, y=5, size=20))

    assert square.area == Area(0.5, 0.125, 20 / 60, 0.5)
    assert set(map(tuple, square.pixels.reshape(-1, 3).tolist())) == {BLUE}


def test_crop_may_be_the_whole_of_a_square_picture() -> None:
    assert seen(stripes(), Crop(x=0, y=0, size=64)).area == Area(0.0, 0.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("x", "y", "size"), [(0, 0, 41), (21, 0, 40), (0, 1, 40), (-1, 0, 9), (0, -1, 9), (0, 0, 0)]
)
def test_crop_outside_of_its_picture_is_refused(x: int, y: int, size: int) -> None:
    with pytest.raises(InvalidParams, match=r"^prompt: the crop of .* its picture of 60x40$"):
        seen(stripes((60, 40)), Crop(x=x, y=y, size=size))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_picture_is_turned_as_its_file_says(orientation: int, kind: str) -> None:
    upright = halves((32, 16))
    stored = upright.transpose(BACK[orientation]) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {}

    square = seen(encoded(stored, kind, exif=exif, **options))

    assert square.area == Area(0.25, 0.0, 0.5, 1.0)
    left, right = square.pixels[:, 0].mean(0), square.pixels[:, -1].mean(0)
    assert np.abs(left - RED).max() < 20
    assert np.abs(right - BLUE).max() < 20


BACK = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""How a picture is stored that is to be turned as EXIF's numbers say."""


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_orientation_leaves_a_picture_as_it_is() -> None:
    file = encoded(halves((16, 16)), exif=b"Exif\x00\x00MM\x00*\xff\xff\xff\xff")

    assert tuple(seen(file).pixels[0, 0]) == RED


def test_what_is_transparent_is_white() -> None:
    assert tuple(seen(encoded(Image.new("RGBA", (9, 9), (*RED, 0)))).pixels[4, 4]) == WHITE


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_picture_of_any_mode_is_seen_in_colours(mode: str) -> None:
    assert seen(encoded(Image.new(mode, (20, 30)))).pixels.shape == (SIDE, SIDE, 3)


def test_picture_is_made_as_large_as_the_model_wants_it() -> None:
    file = stripes((64, 64))

    expected = decoded(file).resize((SIDE, SIDE), Image.Resampling.BICUBIC)

    assert np.array_equal(seen(file).pixels, np.asarray(expected))


def test_numbers_are_scaled_and_normalised_by_colour() -> None:
    file = encoded(Image.new("RGB", (16, 16), (255, 51, 102)))

    numbers = normalised(seen(file).pixels, EYESIGHT)

    assert numbers.shape == (3, SIDE, SIDE)
    assert numbers.dtype == np.float32
    assert numbers[:, 3, 3] == pytest.approx([1.0, -0.05, 0.2], abs=1e-6)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (b"", "must be a picture"),
        (b"GIF89a" + bytes(20), "must be a picture: a PNG, JPEG or WebP file"),
        (stripes()[:90], "cannot be decoded"),
    ],
)
def test_what_is_no_whole_picture_is_refused(file: bytes, reason: str) -> None:
    with pytest.raises(InvalidParams, match=f"^prompt: {reason}"):
        seen(file)


def test_picture_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    file = BytesIO()
    Image.new("1", (8192, 8192)).save(file, "PNG")

    with pytest.raises(InvalidParams, match=r"^prompt: 8192x8192 are too many"):
        seen(file.getvalue())
