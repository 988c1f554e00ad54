"""Errors as this protocol has them: a sentence and a word, and 400 for whatever is refused.

The vendor's clients make a `ValueError` of 400 alone, and would send most of 5xx again.
"""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from api.errors import Problem
from workers.contract.errors import MissingCapability, RequestRejected

_OF_REQUESTS = frozenset({400, 413, 415})
"""Statuses that mean here or elsewhere that the request itself is wrong."""


class AlephAlphaErrorSchema(Schema):
    """An error."""

    error = fields.String(metadata={"description": "What is wrong and what is allowed."})
    code = fields.String(metadata={"example": "INVALID_REQUEST"})


def render_error(problem: Problem) -> dict[str, Any]:
    """An error: what is wrong with a request is one word, whatever it is."""
    code = problem.code
    if problem.status in _OF_REQUESTS and code != MissingCapability.code:
        code = RequestRejected.code
    return {"error": problem.message, "code": code.upper()}


def error_status(problem: Problem) -> int:
    """The status of an error: one for all that is wrong with requests."""
    return 400 if problem.status in _OF_REQUESTS else problem.status
