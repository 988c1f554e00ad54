"""Why a start is refused: each message is one line that is shown instead of a traceback."""

from __future__ import annotations

import json

SHOWN_CHARACTERS = 120


class StartRefused(Exception):
    """The service cannot start on this host as it is; the message says what to do."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


class BadFlag(StartRefused):
    """A flag, or a key of the configuration file, has a value that is not allowed.

    Args:
        source: the flag as it is written, or the file and the key.
        value: what was given; None when there is no value to show.
        problem: what is wrong with it and what is allowed.
    """

    exit_code = 2

    def __init__(self, source: str, value: object, problem: str) -> None:
        shown = "" if value is None else f" {_shown(value)}"
        super().__init__(f"{source}:{shown} {problem}")


def _shown(value: object) -> str:
    """A value in quotes on one line, cut where it is too long to read."""
    text = value if isinstance(value, str) else repr(value)
    cut = text[:SHOWN_CHARACTERS] + ("..." if len(text) > SHOWN_CHARACTERS else "")
    return json.dumps(cut, ensure_ascii=False) if isinstance(value, str) else cut
