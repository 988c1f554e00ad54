"""Which part of a picture each token stands for, and what controls make of it."""

from __future__ import annotations

import pytest
from tokenizer_families import load_codec

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompt_items import AreaControl, IdsItem, ImageItem, TextControl, TextItem
from neodim_sampling.text.items import read_items
from neodim_sampling.text.tiles import Area, Tiles, cut_in_tiles, factor_of_area

WHOLE = Area(0.0, 0.0, 1.0, 1.0)
TOKEN = 5


def control(
    left: float, top: float, width: float, height: float, factor: float, *, whole: bool = False
) -> AreaControl:
    return AreaControl(
        left=left, top=top, width=width, height=height, factor=factor, is_complete=whole
    )


def factors(*controls: AreaControl, square: Area = WHOLE, per_side: int = 2) -> list[float]:
    return [factor_of_area(each, controls) for each in cut_in_tiles(square, per_side)]


def test_tiles_go_row_by_row() -> None:
    tiles = cut_in_tiles(Area(0.5, 0.0, 0.5, 1.0), 2)

    assert tiles == (
        Area(0.5, 0.0, 0.25, 0.5),
        Area(0.75, 0.0, 0.25, 0.5),
        Area(0.5, 0.5, 0.25, 0.5),
        Area(0.75, 0.5, 0.25, 0.5),
    )


def test_control_over_a_part_of_a_tile_counts_in_proportion() -> None:
    # Half of the first tile's width and all of its height.
    assert factors(control(0.0, 0.0, 0.25, 0.5, 0.0)) == [0.5, 1.0, 1.0, 1.0]


def test_complete_control_counts_in_full_for_every_tile_that_it_touches() -> None:
    assert factors(control(0.2, 0.2, 0.4, 0.1, 3.0, whole=True)) == [3.0, 3.0, 1.0, 1.0]


def test_controls_over_one_tile_multiply() -> None:
    both = [control(0.0, 0.0, 0.5, 0.5, 0.5), control(0.0, 0.0, 0.5, 1.0, 0.2)]

    assert factors(*both) == pytest.approx([0.1, 1.0, 0.2, 1.0])
    assert factors(*reversed(both)) == pytest.approx([0.1, 1.0, 0.2, 1.0])


@pytest.mark.parametrize("per_side", [3, 7, 12, 24])
@pytest.mark.parametrize("square", [WHOLE, Area(0.1, 0.0, 0.3, 0.7), Area(1 / 3, 1 / 7, 0.5, 0.6)])
def test_control_along_the_edges_of_tiles_reaches_no_neighbour(per_side: int, square: Area) -> None:
    for place, tile in enumerate(cut_in_tiles(square, per_side)):
        found = factors(
            control(tile.left, tile.top, tile.width, tile.height, 0.0, whole=True),
            square=square,
            per_side=per_side,
        )
        assert [n for n, factor in enumerate(found) if factor != 1] == [place]
        assert found[place] == 0.0


def test_control_outside_of_the_visible_square_does_nothing() -> None:
    square = Area(0.5, 0.0, 0.5, 1.0)

    assert factors(control(0.0, 0.0, 0.5, 1.0, 0.0, whole=True), square=square) == [1.0] * 4


def test_picture_among_items_becomes_its_tokens_with_their_areas_and_factors() -> None:
    tiles = Tiles(TOKEN, cut_in_tiles(WHOLE, 2))
    picture = ImageItem(picture=b"", controls=(control(0.5, 0.0, 0.5, 0.5, 0.25),))
    text = TextItem(text="cat", controls=(TextControl(start=0, length=3, factor=2.0),))

    read = read_items(load_codec("gpt2"), [IdsItem(ids=(1, 2)), picture, text], (), [tiles])

    assert read.ids[:6] == (1, 2, TOKEN, TOKEN, TOKEN, TOKEN)
    assert read.items[1].areas == tiles.areas
    assert read.picture_spans == ((2, 6),)
    assert read.factors == {3: 0.25} | dict.fromkeys(range(6, len(read.ids)), 2.0)


def test_each_picture_among_items_becomes_its_own_tokens() -> None:
    one, other = Tiles(TOKEN, cut_in_tiles(WHOLE, 1)), Tiles(TOKEN, cut_in_tiles(WHOLE, 2))
    items = [ImageItem(picture=b"a"), ImageItem(picture=b"b")]

    read = read_items(load_codec("gpt2"), items, (), [one, other])

    assert read.picture_spans == ((0, 1), (1, 5))
    assert [each.areas for each in read.items] == [one.areas, other.areas]
    assert read.start_ids == ()


@pytest.mark.parametrize(
    "area", [(0.5, 0.0, 0.6, 0.5), (-0.1, 0.0, 0.5, 0.5), (0.0, 0.0, 0.0, 0.5)]
)
def test_control_of_no_part_of_a_picture_is_refused(
    area: tuple[float, float, float, float],
) -> None:
    with pytest.raises(InvalidParams, match=r"^prompt: the rectangle of a control"):
        ImageItem(picture=b"", controls=(control(*area, 0.5),))
