"""From text and TOML to the value of an option, with the error that says what is allowed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from workers.contract import http_address
from workers.launcher.errors import BadFlag
from workers.launcher.layer_split import parse_layers

GROUP_SIZE = "group_size"
KEYS = frozenset({"api_key", "node_key"})
URLS = frozenset({"node_url", "public_url"})
PATHS = frozenset({"cache_dir", "api_keys_file", "data_dir", "config"})
MODELS = frozenset({"model", "image_model"})
"""Options whose value is a path or a name on the hub."""


def kind_of(option: Any) -> type:
    """The type of one value of an option: bool, int or str; `is_repeatable` says if many."""
    words = re.findall(r"\w+", str(option.type))
    return bool if "bool" in words else int if "int" in words else str


def is_repeatable(option: Any) -> bool:
    """Whether the option may be given several times, each adding a value."""
    return str(option.type).startswith("tuple")


def allowed_for(option: Any) -> str:
    """What an option's value may be, in words."""
    low, high = option.metadata["low"], option.metadata["high"]
    if option.name == GROUP_SIZE:
        return "-1 (none), a whole number from 1 up"
    if option.name in URLS:
        return http_address.ALLOWED
    if option.name in KEYS:
        return "visible ASCII characters, no spaces"
    if option.metadata["choices"]:
        return ", ".join(option.metadata["choices"])
    if kind_of(option) is bool:
        return "true, false"
    if kind_of(option) is not int:
        return "text that is not empty"
    if low is None:
        return "a whole number"
    return f"a whole number from {low} " + ("up" if high is None else f"to {high}")


def value_from_text(option: Any, text: str, source: str, base: Path) -> Any:
    """The value that a flag's text stands for.

    Args:
        option: field of `Settings`.
        text: what follows the flag.
        source: the flag, for the error.
        base: directory that a relative path starts from.

    Raises:
        BadFlag: the option does not allow it.
    """
    kind = kind_of(option)
    if kind is bool and text in ("true", "false"):
        return text == "true"
    if kind is int and re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return checked(option, int(text), source, base)
    if kind is str:
        return checked(option, text, source, base)
    raise refusal(option, text, source)


def checked(option: Any, value: Any, source: str, base: Path) -> Any:
    """A value of the right type, once its range, choices or grammar are checked.

    Raises:
        BadFlag: the option does not allow it.
    """
    low, high = option.metadata["low"], option.metadata["high"]
    choices = option.metadata["choices"]
    if type(value) is not kind_of(option) or value == "" or (choices and value not in choices):
        raise refusal(option, value, source)
    if (low is not None and value < low) or (high is not None and value > high):
        raise refusal(option, value, source)
    if option.name == GROUP_SIZE and value == 0:
        raise refusal(option, value, source)
    if option.name == "layers":
        parse_layers(str(value), source)
    if option.name in KEYS and not re.fullmatch(r"[!-~]+", str(value)):
        # A key is a secret, and is not shown.
        raise refusal(option, None, source)
    if option.name in URLS and not _is_url(str(value)):
        # What stands before an @ is a key too.
        raise refusal(option, None if "@" in str(value) else value, source)
    return _absolute(option.name, value, base)


def _is_url(text: str) -> bool:
    try:
        return not http_address.parse_http_url(text).query
    except ValueError:
        return False


def refusal(option: Any, value: object, source: str) -> BadFlag:
    """The error for a value that an option does not allow."""
    return BadFlag(source, value, f"is not allowed; allowed: {allowed_for(option)}")


def _absolute(name: str, value: Any, base: Path) -> Any:
    """The processes run in another directory, so every path is made absolute at once."""
    is_path = name in PATHS or (name in MODELS and is_local_model(value, base))
    return str(base / Path(value).expanduser()) if is_path else value


def is_local_model(text: str, base: Path) -> bool:
    """Whether a model means something on this disk and not a name on the hub."""
    looks_local = text.startswith((".", "/", "~")) or text.lower().endswith(".gguf")
    return looks_local or (base / text).is_dir()


def flag_of(option: Any) -> str:
    """An option as it is written on the command line."""
    return "--" + str(option.name).replace("_", "-")
