"""Writes errors as everything under /v1, and the standard's other paths, have them."""

from __future__ import annotations

from typing import Any

from api.errors import Problem


def render_error(problem: Problem) -> dict[str, Any]:
    """An error: number and text for everybody, and once more as OpenAI's clients read it."""
    return {
        "code": problem.number,
        "message": problem.message,
        "error": {
            "message": problem.message,
            "type": _error_type(problem.status),
            "code": problem.code,
            "param": problem.param,
        },
    }


def _error_type(status: int) -> str:
    if status == 401:
        return "authentication_error"
    return "server_error" if status >= 500 else "invalid_request_error"
