"""Services that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stack import TINY, Stack, running


@pytest.fixture(scope="session")
def tiny_stack() -> Iterator[Stack]:
    """A service with a tiny model, so that a token costs next to nothing."""
    with running(
        "--model",
        str(TINY / "gpt2"),
        "--max-length",
        "250",
        "--slots",
        "8",
        "--semantic-embeddings",
        "true",
    ) as stack:
        yield stack
