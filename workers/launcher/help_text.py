"""The text of `--help`, made from the options of `Settings`."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import Any

from workers.contract.settings import VERSION, default_of, option_fields
from workers.launcher.option_values import flag_of, is_repeatable, kind_of

HEAD = f"""\
Neodim {VERSION}: text generation over HTTP, and pictures, with a queue.

Usage: ./start.sh [--name value | --name=value]...

Without arguments it serves a small model that comes with the installation.
"""
TAIL = """\
Other:
  --help, -h                this text
  --version                 the version of the protocol

Environment:
  REDIS_URL                 the Redis to use when --redis-url is not given
  OMP_NUM_THREADS           threads of each worker (default: the cores, shared out)
  PYTHON                    the Python that start.sh makes its environment with
  NEODIM_VENV               where start.sh makes it (default: .venv beside start.sh)
"""
COLUMN = 28


def help_text() -> str:
    """All flags by group, with what they take and their defaults."""
    groups = groupby(option_fields(), key=lambda option: option.metadata["group"])
    parts = [
        f"{name[0].upper()}{name[1:]}:\n" + "\n".join(_entry(option) for option in options) + "\n"
        for name, options in groups
    ]
    return "\n".join([HEAD, *parts, TAIL])


def _entry(option: Any) -> str:
    flag = f"  {flag_of(option)} {_placeholder(option)}"
    notes = [note for note in (_range(option), _default(option)) if note]
    text = option.metadata["help"] + (f" ({'; '.join(notes)})" if notes else "")
    lines = textwrap.wrap(text, 96 - COLUMN, break_on_hyphens=False)
    first = flag.ljust(COLUMN) if len(flag) < COLUMN else f"{flag}\n{' ' * COLUMN}"
    return first + f"\n{' ' * COLUMN}".join(lines)


def _placeholder(option: Any) -> str:
    return {bool: "true|false", int: "N"}.get(kind_of(option), "TEXT")


def _range(option: Any) -> str:
    low, high = option.metadata["low"], option.metadata["high"]
    if option.metadata["choices"]:
        return "one of " + ", ".join(option.metadata["choices"])
    if high is not None:
        return f"{low} to {high}"
    return "" if low is None else f"at least {low}"


def _default(option: Any) -> str:
    default = default_of(option)
    if default is None or is_repeatable(option):
        return ""
    return f"default {str(default).lower() if isinstance(default, bool) else default}"
