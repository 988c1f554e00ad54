"""The fields of registrations. Unknown ones are skipped: what servers say may grow."""

from __future__ import annotations

from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields

from api.fields import Text, Whole, shown
from api.request_schema import RequestSchema, load
from workers.contract.errors import InvalidParams
from workers.contract.http_address import parse_http_url
from workers.contract.registrations import ModelType

MAX_CHARACTERS = 2000
MAX_MODELS = 1000


class Name(Text):
    """Text that is not empty."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MAX_CHARACTERS, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not text:
            raise ValidationError("must not be empty")
        return text


class Url(Name):
    """Where a server is called."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        try:
            address = parse_http_url(text)
        except ValueError as error:
            raise ValidationError(f"{error}, not {shown(text)}") from None
        if address.key:
            raise ValidationError("must have no user name in it")
        return text


class TolerantSchema(RequestSchema):
    """A JSON object of which only known fields are read."""

    class Meta:
        """Overrides that unknown names are errors."""

        unknown = EXCLUDE


class ServerSchema(TolerantSchema):
    """One server of one model."""

    model = Name(required=True)
    api = Url(required=True, metadata={"example": "http://127.0.0.1:1042/v1/chat/completions"})
    type = Whole(
        low=min(ModelType),
        high=max(ModelType),
        load_default=ModelType.TEXT,
        metadata={"description": "0 text, 1 text to image, 2 image editing"},
    )
    cid = Text(
        max_length=MAX_CHARACTERS,
        load_default="",
        metadata={"description": "Tells servers of the same model apart."},
    )


class Servers(fields.List[dict[str, Any]]):
    """A list of servers; an error names the entry."""

    default_error_messages = Name.default_error_messages

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(fields.Nested(ServerSchema), **kwargs)
        self.metadata = {"maxItems": MAX_MODELS, **self.metadata}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValidationError(f"must be a list of objects, not {shown(value)}")
        if len(value) > MAX_MODELS:
            raise ValidationError(f"must have at most {MAX_MODELS} entries, not {len(value)}")
        return [_server(n, each) for n, each in enumerate(value)]


class RegisterModelSchema(ServerSchema):
    """A server, and the project that its model belongs to."""

    project = Name(required=True)


class UnregisterModelSchema(TolerantSchema):
    """Which server to forget."""

    project = Name(required=True)
    model = Name(required=True)
    cid = Text(max_length=MAX_CHARACTERS, load_default="")


class RegisterProjectSchema(TolerantSchema):
    """A project and all its servers."""

    project = Name(required=True)
    models = Servers(required=True)


class UnregisterProjectSchema(TolerantSchema):
    """Which project to forget."""

    project = Name(required=True)


class DoneSchema(Schema):
    """It is done."""

    code = fields.Integer(metadata={"description": "0"})
    message = fields.String()


_SERVER = ServerSchema()


def _server(n: int, body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise ValidationError(f"must be a list of objects, but entry {n} is {shown(body)}")
    try:
        return load(_SERVER, body)
    except InvalidParams as error:
        raise ValidationError(f"entry {n}: {error}") from None
