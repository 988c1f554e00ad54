"""The grammar of `--layers`, and what of it this version can do."""

from __future__ import annotations

import re

from workers.launcher.errors import BadFlag

FLAG = "--layers"
GRAMMAR = (
    "numbers of layers, zero or more, one for each GPU, separated by commas, "
    "with at most one a (all layers that are left)"
)


def parse_layers(text: str, source: str = FLAG) -> tuple[int | None, ...]:
    """Layers for each GPU.

    Args:
        text: as the user wrote it, `a`, `4,a` or `10,20`.
        source: the flag or configuration key, for the error.

    Returns:
        One number a GPU; None stands for the layers that are left.

    Raises:
        BadFlag: the text is not of the grammar.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"a|[0-9]{1,9}", part) for part in parts) or parts.count("a") > 1:
        raise BadFlag(source, text, f"is not allowed; allowed: {GRAMMAR}")
    return tuple(None if part == "a" else int(part) for part in parts)


def check_layers(text: str, n_layers: int | None) -> None:
    """Refuse a split that the model does not have, or that this version cannot do yet.

    Args:
        text: `--layers`.
        n_layers: layers of the model; None when that is not known before it is loaded.

    Raises:
        BadFlag: more layers than the model has, or layers on several devices.
    """
    split = parse_layers(text)
    named = sum(n for n in split if n is not None)
    if n_layers is not None and named > n_layers:
        raise BadFlag(FLAG, text, f"is too many; allowed: at most {n_layers}, the model's layers")
    is_whole = named == 0 or (named == n_layers and named in split)
    if not is_whole:
        raise BadFlag(
            FLAG, text, "splits the layers over several devices, not yet supported; allowed: a, 0"
        )
