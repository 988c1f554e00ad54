"""How JSON leaves this server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from flask import Response


def to_json(body: Any) -> bytes:
    """A value as compact JSON in UTF-8, on one line."""
    return msgspec.json.encode(body)


def json_reply(
    body: Mapping[str, Any] | Sequence[Any],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A response with a JSON body."""
    response = Response(to_json(body), status, content_type="application/json")
    response.headers.update(headers or {})
    return response
