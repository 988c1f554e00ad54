"""The README names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from api.errors import ANSWERS
from workers.contract.errors import NeodimError
from workers.contract.settings import option_fields

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", [option.name for option in option_fields()])
def test_readme_explains_every_flag(name: str) -> None:
    assert f"`--{name.replace('_', '-')}`" in README


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_readme_lists_the_number_of_every_error(kind: type[NeodimError]) -> None:
    answer = ANSWERS[kind]

    assert f"| {answer.number} | `{kind.code}` ({answer.status}) |" in README


def test_life_of_a_request_names_files_that_exist() -> None:
    life = README.split("## A request's life")[1].split("\n## ")[0]

    named = re.findall(r"`([\w/]+(?:\.py|/))`", life)

    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
