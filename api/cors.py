"""Lets pages of any origin call this server, those opened from disk included."""

from __future__ import annotations

from flask import Flask, Response, current_app, request

EXPOSED_HEADERS = "Location, Preference-Applied, Retry-After, X-Request-Id"
PREFLIGHT_MAX_AGE_S = 600


def install(app: Flask) -> None:
    """Answer preflight requests, for any path, and mark every response for its origin."""
    app.before_request(_preflight)
    app.after_request(_mark)


def _preflight() -> Response | None:
    if request.method != "OPTIONS":
        return None
    adapter = current_app.create_url_adapter(request)
    served = set(adapter.allowed_methods()) if adapter else set()
    methods = ", ".join([*sorted((served or {"POST"}) - {"OPTIONS"}), "OPTIONS"])
    response = Response(status=200, headers={"Allow": methods})
    response.headers["Access-Control-Allow-Methods"] = methods
    response.headers["Access-Control-Allow-Credentials"] = "true"
    response.headers["Access-Control-Max-Age"] = str(PREFLIGHT_MAX_AGE_S)
    wanted = request.headers.get("Access-Control-Request-Headers")
    if wanted:
        response.headers["Access-Control-Allow-Headers"] = wanted
    return response


def _mark(response: Response) -> Response:
    response.vary.add("Origin")
    origin = request.headers.get("Origin")
    if origin:
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
    return response
