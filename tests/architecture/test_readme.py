"""The README names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workers.contract.settings import option_fields

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", [option.name for option in option_fields()])
def test_readme_explains_every_flag(name: str) -> None:
    assert f"`--{name.replace('_', '-')}`" in README


def test_life_of_a_request_names_files_that_exist() -> None:
    life = README.split("## A request's life")[1].split("\n## ")[0]

    named = re.findall(r"`([\w/]+(?:\.py|/))`", life)

    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
