"""Names every answer by x-request-id: the id of the job that the request made, or a new one."""

from __future__ import annotations

import uuid

from flask import Flask, Response, g


def install(app: Flask) -> None:
    """Put the id on every response."""
    app.after_request(_mark)


def adopt(job_id: str) -> None:
    """Let this request go by the id of its job."""
    g.request_id = job_id


def _mark(response: Response) -> Response:
    response.headers["X-Request-Id"] = g.get("request_id") or str(uuid.uuid4())
    return response
