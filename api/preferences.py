"""The Prefer header (RFC 7240): how long a client wants to wait for its job."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_WAIT_S = 3600
"""Longest wait that is granted."""

_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,99})"?', re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Preference:
    """What a client prefers; what it did not ask for, or not in a form that exists, is off.

    Args:
        is_async: whether it wants the job rather than its result.
        wait_s: seconds for which it would still wait for the result, None = not said.
    """

    is_async: bool = False
    wait_s: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether the client takes a job for an answer."""
        return self.is_async or self.wait_s is not None

    @property
    def headers(self) -> dict[str, str]:
        """The answer's headers about it."""
        applied = ["respond-async"] * self.is_async
        if self.wait_s is not None:
            applied.append(f"wait={self.wait_s}")
        return {"Preference-Applied": ", ".join(applied)} if applied else {}


def parse_preference(header: str | None) -> Preference:
    """The preferences in a header; of one given twice the first counts, unknown ones are skipped.

    Args:
        header: the header's value, None = there is none.
    """
    is_async = False
    wait_s: int | None = None
    for part in (header or "").split(","):
        preference = part.split(";")[0].strip()
        found = _WAIT.fullmatch(preference)
        if preference.lower() == "respond-async":
            is_async = True
        elif found and wait_s is None:
            wait_s = min(int(found[1]), MAX_WAIT_S)
    return Preference(is_async, wait_s)
