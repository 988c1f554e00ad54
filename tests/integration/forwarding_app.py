"""The API with one more path, which forwards: what a room does for models not served here.

And with two whose answers gunicorn refuses to send.
"""

from __future__ import annotations

import json

from flask import Flask, Response, request

from api import app
from api.connection import Connection
from api.json_body import read_body
from api.services import services
from api.settings import Settings
from workers.contract.errors import UnknownModel

START = "/v1/forwarding-test"
UNSENDABLE = ("/v1/unsendable", "/generate/unsendable")


def create_app(settings: Settings | None = None) -> Flask:
    made = app.create_app(settings)
    made.add_url_rule(f"{START}/<path:call>", view_func=_forward, methods=["POST"])
    for path in UNSENDABLE:
        made.add_url_rule(path, path, lambda: Response(headers={"X-A": "\x01"}))
    return made


def _forward(call: str) -> Response:
    body = read_body(request)
    model = json.loads(body)["model"]
    node = services().node
    assert node is not None
    connection = Connection(request.environ)
    reply = node.forwarding.forward(model, f"/v1/{call}", body, request.headers, connection)
    if reply is None:
        raise UnknownModel(f"no model {model}")
    return reply
