"""Writes errors as this protocol's clients read them."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from api.errors import Problem
from workers.contract.errors import InvalidParams, MissingCapability

OWN_CODES = frozenset({MissingCapability.code})
"""What is refused with status 400 and is yet no fault of a value."""


class AlephAlphaErrorSchema(Schema):
    """An error of this protocol."""

    error = fields.String()
    code = fields.String(metadata={"example": "INVALID_REQUEST"})


def render_error(problem: Problem) -> dict[str, Any]:
    """An error: a sentence, and a word in capitals."""
    is_bad_value = problem.status == 400 and problem.code not in OWN_CODES
    code = InvalidParams.code if is_bad_value else problem.code
    return {"error": problem.message, "code": code.upper()}
