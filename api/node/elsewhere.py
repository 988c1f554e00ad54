"""Lets other servers answer requests for models that they alone serve."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from api.connection import Connection
from api.services import services


def answer_elsewhere(raw: bytes, model: Any) -> Response | None:
    """Another server's answer to the current request; None = it is for this one to answer.

    Args:
        raw: the request's body as it came.
        model: which model the body names; anything, since nothing was checked yet.

    Raises:
        NoServerLeft: none of the model's servers answers.
        ForwardedAlready: the request comes from another node.
        ClientGone: nobody waits any more.
    """
    made = services()
    if made.node is None or not isinstance(model, str) or model in made.submission.models():
        return None
    connection = Connection(request.environ)
    return made.node.forwarding.forward(model, request.path, raw, request.headers, connection)
