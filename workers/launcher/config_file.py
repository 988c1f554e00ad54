"""The configuration file: TOML with the same names as the flags, at the top level."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from workers.contract.settings import option_fields
from workers.launcher.errors import BadFlag
from workers.launcher.nearest import nearest
from workers.launcher.option_values import checked, is_repeatable, kind_of

FLAG = "--config"
ALLOWED = "allowed: a TOML file with settings"


def read_config(path: Path) -> dict[str, Any]:
    """The settings that a configuration file gives, by field name.

    Args:
        path: the file; relative paths in it start from its directory.

    Raises:
        BadFlag: the file cannot be read, is not TOML, or has an unknown key or a bad value.
    """
    options = {option.name: option for option in option_fields() if option.name != "config"}
    values: dict[str, Any] = {}
    for key, value in _load(path).items():
        name = key.replace("-", "_")
        source = f"{path}: {key}"
        if name not in options:
            known = [each.replace("_", "-") for each in options]
            raise BadFlag(source, None, f"no such setting{nearest(key, known)}")
        if name in values:
            raise BadFlag(source, None, "is there twice, with dashes and with underscores")
        values[name] = _value(options[name], value, source, path.parent)
    return values


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise BadFlag(FLAG, str(path), f"cannot be read: {error.strerror}; {ALLOWED}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadFlag(FLAG, str(path), f"is not TOML: {error}; {ALLOWED}") from error


def _value(option: Any, value: Any, source: str, base: Path) -> Any:
    if is_repeatable(option):
        each = value if isinstance(value, list) else [value]
        return tuple(_one_value(option, one, source, base) for one in each)
    return _one_value(option, value, source, base)


def _one_value(option: Any, value: Any, source: str, base: Path) -> Any:
    if kind_of(option) is str and not isinstance(value, str):
        raise BadFlag(source, value, "is not text; allowed: text in quotes")
    return checked(option, value, source, base)
