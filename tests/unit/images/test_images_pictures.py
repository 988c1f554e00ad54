"""Files to pixels and back."""

from __future__ import annotations

import numpy as np
import pytest
from picture_files import encoded, stripes
from PIL import Image

from workers.contract.errors import InvalidParams
from workers.contract.image_job import Picture
from workers.images.pictures import decode_mask, decode_source, encode_png

pytestmark = pytest.mark.model


def source(body: bytes) -> Picture:
    return Picture(field="image", body=body)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_a_source_of_any_mode_is_rgb_of_the_size_asked_for(mode: str) -> None:
    file = encoded(Image.new(mode, (20, 30)))

    decoded = decode_source(source(file), (64, 72))

    assert (decoded.mode, decoded.size) == ("RGB", (64, 72))


def test_greys_of_sixteen_bits_are_scaled() -> None:
    ramp = Image.fromarray(np.linspace(0, 65535, 4096).reshape(64, 64).astype(np.uint16))

    decoded = decode_source(source(encoded(ramp)), (64, 64))

    assert [decoded.getpixel(place)[0] for place in ((0, 0), (0, 32), (63, 63))] == [0, 128, 255]


def test_a_cmyk_photograph_is_decoded() -> None:
    file = encoded(Image.new("CMYK", (64, 64), (0, 0, 0, 0)), "JPEG")

    assert decode_source(source(file), (64, 64)).getpixel((9, 9)) == (255, 255, 255)


def test_what_is_transparent_in_a_source_is_white() -> None:
    file = encoded(Image.new("RGBA", (64, 64), (200, 0, 0, 0)))

    assert decode_source(source(file), (64, 64)).getpixel((0, 0)) == (255, 255, 255)


def test_a_mask_opens_only_what_is_fully_transparent() -> None:
    image = Image.new("RGBA", (64, 64), (0, 0, 0, 1))
    image.paste((0, 0, 0, 0), (0, 0, 32, 64))

    mask = decode_mask(Picture(field="mask", body=encoded(image)), (128, 64))

    assert mask.size == (128, 64)
    assert mask.getbbox() == (0, 0, 64, 64)
    assert set(mask.tobytes()) == {0, 255}


def test_a_mask_that_opens_nothing_is_refused() -> None:
    with pytest.raises(InvalidParams, match=r"^mask: has no fully transparent area"):
        decode_mask(Picture(field="mask", body=stripes()), (64, 64))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_file_that_is_cut_is_refused(kind: str) -> None:
    whole = stripes((200, 200), kind)

    with pytest.raises(InvalidParams, match=r"^image: cannot be decoded"):
        decode_source(source(whole[: len(whole) // 2]), (64, 64))


def test_a_file_that_is_larger_than_its_first_bytes_say_is_refused() -> None:
    webp = bytearray(encoded(Image.new("RGBA", (64, 64), (9, 9, 9, 9)), "WEBP", exif=b"x" * 20))
    assert webp[12:16] == b"VP8X"
    webp[24] = 70

    with pytest.raises(InvalidParams, match=r"^image: cannot be decoded"):
        decode_source(source(bytes(webp)), (64, 64))


def test_a_png_comes_back_as_it_was() -> None:
    image = decode_source(source(stripes()), (64, 64))

    again = decode_source(source(encode_png(image)), (64, 64))

    assert again.tobytes() == image.tobytes()
    assert encode_png(again) == encode_png(image)


def test_a_mask_may_have_a_palette() -> None:
    image = Image.new("P", (64, 64), 1)
    image.putpalette([0, 0, 0, 255, 255, 255])
    image.paste(0, (0, 0, 32, 64))
    file = encoded(image, transparency=0)

    mask = decode_mask(Picture(field="mask", body=file), (64, 64))

    assert mask.getbbox() == (0, 0, 32, 64)
