"""The command line: `--name value` and `--name=value`, one flag for every option of `Settings`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workers.contract.settings import Settings, option_fields
from workers.launcher.config_file import read_config
from workers.launcher.errors import BadFlag
from workers.launcher.nearest import nearest
from workers.launcher.option_values import (
    allowed_for,
    flag_of,
    is_repeatable,
    value_from_text,
)

HELP = ("--help", "-h")
VERSION = ("--version",)


def is_asked(names: tuple[str, ...], argv: Sequence[str]) -> bool:
    """Whether one of the flags that take no value is among the arguments."""
    return any(name in argv for name in names)


def parse_arguments(argv: Sequence[str]) -> Settings:
    """Settings from flags and from the configuration file that they may name; flags win.

    Args:
        argv: the arguments, without the program's name.

    Raises:
        BadFlag: an unknown flag, a flag without value, or a value that is not allowed.
    """
    given: dict[str, Any] = {}
    for option, text in _pairs(argv):
        value = value_from_text(option, text, flag_of(option), Path.cwd())
        if is_repeatable(option):
            value = (*given.get(option.name, ()), value)
        given[option.name] = value
    from_file = read_config(Path(given["config"])) if "config" in given else {}
    return Settings(**{**from_file, **given})


def _pairs(argv: Sequence[str]) -> list[tuple[Any, str]]:
    """Each option with the text that was given for it, in order."""
    options = {flag_of(option): option for option in option_fields()}
    pairs = []
    left = list(argv)
    while left:
        flag, has_value, text = left.pop(0).partition("=")
        if flag not in options:
            raise _unknown(flag, [*options, *HELP, *VERSION])
        if not has_value:
            if not left or left[0].startswith("--"):
                allowed = allowed_for(options[flag])
                raise BadFlag(flag, None, f"has no value; allowed: {allowed}")
            text = left.pop(0)
        pairs.append((options[flag], text))
    return pairs


def _unknown(flag: str, known: list[str]) -> BadFlag:
    if flag in (*HELP, *VERSION):
        return BadFlag(flag, None, "takes no value")
    problem = "is not a flag" if flag.startswith("-") else "is not a flag; flags start with --"
    return BadFlag(flag or '""', None, f"{problem}{nearest(flag, known)} (--help lists them)")
