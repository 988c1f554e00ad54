"""Registers endpoints together with what OpenAPI says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from flask import Response
from flask_smorest import Blueprint
from marshmallow import Schema

JSON = "application/json"

View = Callable[..., Response]


def document(
    blueprint: Blueprint,
    path: str,
    method: str,
    *,
    answers: Mapping[int, type[Schema] | Schema | str],
    errors: Mapping[tuple[int, ...], type[Schema]],
    body: type[Schema] | None = None,
    body_type: str = JSON,
    headers: tuple[str, ...] = (),
    query: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
) -> Callable[[View], View]:
    """Serve a path by the decorated function, whose docstring is its description.

    Args:
        blueprint: the endpoint's room.
        path: the path, in Flask's notation.
        method: the HTTP method.
        answers: what is answered, by status: a schema of JSON, or a media type.
        errors: schemas of errors, by their statuses.
        body: the body that is wanted; the function reads it itself.
        body_type: its media type.
        headers: request headers that have a meaning here.
        query: query parameters that have a meaning here.
        also: other paths that are the same.
    """
    responses = {str(status): _response(status, what) for status, what in answers.items()}
    for statuses, schema in errors.items():
        responses |= {str(status): _response(status, schema) for status in statuses}
    description: dict[str, Any] = {"responses": responses}
    if body is not None:
        description["requestBody"] = {"required": True, "content": {body_type: {"schema": body}}}
    places = [*((name, "header") for name in headers), *((name, "query") for name in query)]
    if places:
        description["parameters"] = [
            {"name": name, "in": place, "schema": {"type": "string"}} for name, place in places
        ]

    def register(view: View) -> View:
        documented = blueprint.doc(**description)(view)
        for n, each in enumerate((path, *also)):
            name = f"{view.__name__}_{n}" if n else view.__name__
            blueprint.add_url_rule(each, name, documented, methods=[method])
        return view

    return register


def _json(schema: type[Schema] | Schema) -> dict[str, Any]:
    return {JSON: {"schema": schema}}


def _response(status: int, what: type[Schema] | Schema | str) -> dict[str, Any]:
    content = {what: {"schema": {"type": "string"}}} if isinstance(what, str) else _json(what)
    return {"description": HTTPStatus(status).phrase, "content": content}
