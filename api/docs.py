"""`/docs`: the OpenAPI document as one page that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from flask import Flask, Response

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #8886;"
    "padding:.2rem .6rem;text-align:left;vertical-align:top}code{font-size:.9em}"
    ":root{color-scheme:light dark}"
)


def install(app: Flask, spec: Mapping[str, Any]) -> None:
    """Serve the page.

    Args:
        app: the application.
        spec: the OpenAPI document, whole by now.
    """
    page = "".join(_page(spec))

    def docs() -> Response:
        return Response(page, content_type="text/html; charset=utf-8")

    app.add_url_rule("/docs", view_func=docs)


def _page(spec: Mapping[str, Any]) -> Iterator[str]:
    title = escape(f"{spec['info']['title']} {spec['info']['version']}")
    yield f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
    yield '<meta name=viewport content="width=device-width">'
    yield f"<style>{_STYLE}</style><h1>{title}</h1>"
    yield '<p>For programs: <a href="openapi.json">openapi.json</a>.</p><h2>Endpoints</h2>'
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            if method in ("get", "post", "put", "delete"):
                yield from _operation(method, path, operation)
    yield "<h2>Schemas</h2>"
    for name, schema in spec["components"]["schemas"].items():
        yield from _schema(name, schema)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h3><code>{method.upper()} {escape(path)}</code></h3>"
    yield f"<p>{escape(operation.get('summary', ''))}</p>"
    yield f"<p>{escape(operation.get('description', ''))}</p><table>"
    body = operation.get("requestBody")
    if body:
        yield f"<tr><th>body<td>{_content(body)}"
    for parameter in operation.get("parameters", ()):
        yield f"<tr><th>{escape(parameter['in'])}<td><code>{escape(parameter['name'])}</code>"
    for status, response in operation["responses"].items():
        yield f"<tr><th>{escape(status)}<td>{_content(response)}"
    yield "</table>"


def _content(part: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{escape(media_type)} {_type(content['schema'])}"
        for media_type, content in part.get("content", {}).items()
    )


def _schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    yield f'<h3 id="{escape(name)}">{escape(name)}</h3><table>'
    for field, described in schema.get("properties", {}).items():
        mark = " (required)" if field in required else ""
        yield f"<tr><td><code>{escape(field)}</code>{mark}<td>{_type(described)}"
        yield f"<td>{escape(_notes(described))}"
    yield "</table>"


def _type(schema: Mapping[str, Any]) -> str:
    reference = schema.get("$ref") or next(
        (each["$ref"] for each in schema.get("allOf", ()) if "$ref" in each), None
    )
    if reference:
        name = escape(reference.rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    kinds = schema.get("type", "any")
    return escape(kinds if isinstance(kinds, str) else " or ".join(kinds))


def _notes(schema: Mapping[str, Any]) -> str:
    notes = [str(schema["description"])] if "description" in schema else []
    if "enum" in schema:
        notes.append("one of " + ", ".join(map(str, schema["enum"])))
    if "minimum" in schema:
        notes.append(f"{schema['minimum']} to {schema.get('maximum', 'any')}")
    if "default" in schema:
        notes.append(f"default {schema['default']!r}")
    return "; ".join(notes)
