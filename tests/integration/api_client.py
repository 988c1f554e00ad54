"""Flask's test client on an application that uses the Redis of a test."""

from __future__ import annotations

import json
from typing import Any

from flask.testing import FlaskClient
from scripted_worker import MODEL

from api.app import create_app
from workers.contract.settings import Settings

REQUEST = {"prompt": "count", "generated_tokens_count": 4, "max_total_tokens": 64}


def make_client(redis_url: str, **settings: Any) -> FlaskClient:
    """A client of a new application."""
    return create_app(Settings(redis_url=redis_url, model_name=MODEL, **settings)).test_client()


def request(**fields: Any) -> dict[str, Any]:
    """A Neodim request for four tokens, with other fields as given."""
    return {**REQUEST, **fields}


def submission(**fields: Any) -> dict[str, Any]:
    """The same as a job to submit."""
    return {"protocol": "neodim", "request": request(**fields)}


def read_events(body: bytes) -> list[tuple[str, str, Any]]:
    """Id, kind and data of each event of a stream."""
    events = []
    for frame in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
        if fields:
            events.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return events


def text_of(events: list[tuple[str, str, Any]]) -> str:
    """The text that a stream's events add up to."""
    return "".join(data["text"] for _, kind, data in events if kind == "delta")
