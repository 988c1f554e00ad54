"""The fields of `/tokenize` and `/detokenize`."""

from __future__ import annotations

from marshmallow import Schema, fields

from api.aleph_alpha.open_schema import OpenSchema
from api.aleph_alpha.prompt import TokenIds
from api.fields import Flag, Text, says


class TokenizeSchema(OpenSchema):
    """A text to cut into tokens."""

    model = Text(required=True, metadata=says("Whose tokenizer, as /models_available lists them."))
    prompt = Text(required=True, metadata=says("The text."))
    tokens = Flag(load_default=False, metadata=says("Whether to tell the vocabulary's strings."))
    token_ids = Flag(load_default=False, metadata=says("Whether to tell their ids."))


class DetokenizeSchema(OpenSchema):
    """Tokens to make a text of."""

    model = Text(required=True, metadata=says("Whose tokenizer, as /models_available lists them."))
    token_ids = TokenIds(required=True, metadata=says("Ids of the vocabulary."))


class TokensSchema(Schema):
    """The tokens of a text: what was asked for."""

    tokens = fields.List(fields.String())
    token_ids = fields.List(fields.Integer())


class DetokenizedSchema(Schema):
    """The text of tokens; special ones have none."""

    result = fields.String()
