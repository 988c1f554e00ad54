"""Options that several benches have."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence


def add_effort_options(parser: argparse.ArgumentParser) -> None:
    """How much is asked for, and how often."""
    parser.add_argument(
        "--rounds",
        type=count,
        default=5,
        help="rounds that are counted, after one that is not (default: %(default)s)",
    )
    parser.add_argument(
        "--prompt-tokens",
        type=count,
        default=10,
        help="prompt tokens of each request (default: %(default)s)",
    )
    parser.add_argument(
        "--new-tokens",
        type=count,
        default=64,
        help="generated tokens of each request (default: %(default)s)",
    )


def count(text: str) -> int:
    """A number from 1 on.

    Raises:
        argparse.ArgumentTypeError: the text is not such a number.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return int(text)


def counts(text: str) -> list[int]:
    """Numbers from 1 on, with commas between them.

    Raises:
        argparse.ArgumentTypeError: a part of the text is not such a number.
    """
    return [count(part.strip()) for part in text.split(",")]


def names(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads names with commas between them, which must be of the allowed ones."""

    def chosen(text: str) -> list[str]:
        found = [part.strip() for part in text.split(",")]
        for name in found:
            if name not in allowed:
                choice = f"{', '.join(allowed)}, with commas between several"
                raise argparse.ArgumentTypeError(f"{name!r} is unknown; choose from {choice}")
        return found

    return chosen
