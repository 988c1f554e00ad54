from __future__ import annotations

import pytest

from workers.launcher.errors import BadFlag
from workers.launcher.layer_split import check_layers, parse_layers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", (None,)),
        ("0", (0,)),
        ("4,a", (4, None)),
        ("a,4", (None, 4)),
        ("10, 20", (10, 20)),
        ("0,0,a,1", (0, 0, None, 1)),
    ],
)
def test_layers_are_numbers_and_one_rest(text: str, expected: tuple[int | None, ...]) -> None:
    split = parse_layers(text)

    assert split == expected


@pytest.mark.parametrize(
    "text", ["", ",", "a,a", "A", "all", "-1", "1,", "1.5", "1;2", "+1", "٣", "1e2", "9" * 40]
)
def test_anything_else_is_refused_by_the_flags_name(text: str) -> None:
    with pytest.raises(BadFlag) as refusal:
        parse_layers(text)

    assert str(refusal.value).startswith(f'--layers: "{text}" is not allowed; allowed: numbers')


@pytest.mark.parametrize("text", ["a", "0", "0,a", "a,0", "0,0", "12", "0,12", "12,a"])
def test_a_model_in_one_place_is_accepted(text: str) -> None:
    check_layers(text, 12)


@pytest.mark.parametrize("text", ["13", "999", "6,7", "13,a"])
def test_more_layers_than_the_model_has_are_refused(text: str) -> None:
    with pytest.raises(BadFlag) as refusal:
        check_layers(text, 12)

    assert str(refusal.value) == (
        f'--layers: "{text}" is too many; allowed: at most 12, the model\'s layers'
    )


@pytest.mark.parametrize(("text", "n_layers"), [("6,6", 12), ("6", 12), ("1,a", 12), ("4", None)])
def test_a_split_over_several_devices_is_not_yet_supported(text: str, n_layers: int | None) -> None:
    with pytest.raises(BadFlag, match="not yet supported") as refusal:
        check_layers(text, n_layers)

    assert f'--layers: "{text}"' in str(refusal.value)
