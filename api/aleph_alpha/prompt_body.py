"""Reads the bodies of requests with prompts, which are longer where models read pictures."""

from __future__ import annotations

from typing import Any

from flask import request

from api.json_body import read_json
from api.services import services


def read_prompt_body() -> dict[str, Any]:
    """The current request's JSON object.

    Raises:
        MalformedBody: it is not a JSON object, or did not come whole.
        WrongMediaType: it is said to be something else.
        BodyTooLarge: it is longer than a request may be here.
        redis.RedisError: nobody knows what workers there are.
    """
    made = services()
    if made.fleet.reads_pictures():
        settings = made.settings
        longest = max(settings.image_body_limit_bytes, settings.body_limit_bytes)
        request.max_content_length = longest
    return read_json(request)
