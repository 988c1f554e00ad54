"""What the schemas of all requests share: null means default, and nothing unknown gets through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, pre_load

from api.fields import shown_name
from workers.contract.errors import InvalidParams

MAX_PROBLEMS = 8
"""Problems that one error text lists."""


class RequestSchema(Schema):
    """A request's JSON object."""

    class Meta:
        """Unknown names are errors; fields keep their order in the documentation."""

        unknown = RAISE

    error_messages = {"unknown": "is not a known field", "type": "must be an object"}  # noqa: RUF012 - marshmallow declares it so

    @pre_load
    def drop_nulls(self, body: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        """Treat a known field that is null as one that is not there."""
        return {
            name: value
            for name, value in body.items()
            if value is not None or name not in self.fields
        }


def load(schema: Schema, body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request, by name, defaults filled in.

    Raises:
        InvalidParams: naming every field at fault, up to `MAX_PROBLEMS`.
    """
    try:
        loaded: dict[str, Any] = schema.load(body)
    except ValidationError as error:
        problems = list(_problems(error.messages, schema))
        (name, problem), others = problems[0], problems[1:MAX_PROBLEMS]
        texts = [problem, *(f"{each}: {text}" for each, text in others)]
        if len(problems) > MAX_PROBLEMS:
            texts.append(f"and {len(problems) - MAX_PROBLEMS} more")
        raise InvalidParams(name, "; ".join(texts)) from None
    return loaded


def _problems(messages: Any, schema: Schema) -> Iterator[tuple[str, str]]:
    """Known fields first, as they come in; marshmallow gives unknown ones in no order."""
    unknown = sorted(name for name in messages if name not in schema.fields)
    for name in [*(name for name in messages if name in schema.fields), *unknown]:
        yield shown_name(str(name)), ", ".join(map(str, messages[name]))
