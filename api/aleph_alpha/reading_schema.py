"""The fields of requests for which a model only reads: types, defaults and simple ranges."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from marshmallow import ValidationError, fields

from api.aleph_alpha.attention_schema import AttentionSchema
from api.aleph_alpha.open_schema import OpenSchema
from api.aleph_alpha.prompt import PromptItems, TokenOverlap
from api.fields import REQUIRED, Choice, Flag, Number, Object, Text, Whole, says, shown
from api.request_schema import load
from workers.contract.errors import InvalidParams
from workers.contract.reading_job import Granularity, Pooling, Postprocessing

MAX_LAYERS = 1_000
MAX_PROMPTS = 100
"""Most prompts of one request for embeddings: what the vendor's client sends at once."""

DEFAULT_FACTOR = 0.1
"""What an explanation scales the attention by that a part of the prompt gets."""


class TargetGranularity(StrEnum):
    """What is explained."""

    COMPLETE = "complete"
    TOKEN = "token"


class Representation(StrEnum):
    """What a text is that others are compared with."""

    SYMMETRIC = "symmetric"
    DOCUMENT = "document"
    QUERY = "query"


class PromptGranularity(fields.Field[tuple[Granularity | None, str]]):
    """How a prompt is cut: an object with type and delimiter, or the bare type."""

    def _deserialize(
        self, value: Any, attr: Any, data: Any, **kwargs: Any
    ) -> tuple[Granularity | None, str]:
        given = {"type": value} if isinstance(value, str) else Object().deserialize(value)
        try:
            loaded = load(_GranularitySchema(), given or {})
        except InvalidParams as error:
            raise ValidationError(str(error)) from None
        return loaded["type"], loaded["delimiter"]


class _GranularitySchema(OpenSchema):
    """The fields of `prompt_granularity`."""

    type = Choice(Granularity, load_default=None)
    delimiter = Text(load_default="")


class Several(fields.Field[tuple[Any, ...]]):
    """A list of one to so many values of a kind."""

    default_error_messages = REQUIRED

    def __init__(self, kind: fields.Field[Any], *, most: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind = kind
        self.most = most

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not 1 <= len(value) <= self.most:
            said = f"{len(value)} entries" if isinstance(value, list) else shown(value)
            raise ValidationError(f"must be a list of 1 to {self.most} entries, not {said}")
        return tuple(self._entry(n, each) for n, each in enumerate(value))

    def _entry(self, n: int, value: Any) -> Any:
        try:
            return self.kind.deserialize(value)
        except ValidationError as error:
            raise ValidationError(f"entry {n} {error.messages[0]}") from None


class PromptField(PromptItems):
    """The prompt of a request."""

    def __init__(self) -> None:
        super().__init__(
            required=True, metadata=says("A string, or a list of texts, token ids and pictures.")
        )


class EvaluationSchema(AttentionSchema):
    """A request of `POST /evaluate`."""

    prompt = PromptField()
    completion_expected = Text(required=True, metadata=says("The text that is judged."))


class ExplanationSchema(AttentionSchema):
    """A request of `POST /explain`."""

    prompt = PromptField()
    target = Text(required=True, metadata=says("The text that is explained."))
    control_factor = Number(
        low=0,
        load_default=DEFAULT_FACTOR,
        metadata=says("For the attention that the part gets which is looked at."),
    )
    control_token_overlap = Choice(
        TokenOverlap,
        load_default=TokenOverlap.PARTIAL,
        metadata=says("What it does to a token that the part covers in part."),
    )
    prompt_granularity = PromptGranularity(
        load_default=(None, ""),
        metadata=says("How the prompt is cut; null = the way with nearest to 30 parts."),
    )
    target_granularity = Choice(
        TargetGranularity,
        load_default=TargetGranularity.COMPLETE,
        metadata=says("Whether the target is explained as a whole or token by token."),
    )
    postprocessing = Choice(
        Postprocessing,
        load_default=Postprocessing.NONE,
        metadata=says("What is done to the scores."),
    )
    normalize = Flag(load_default=False, metadata=says("Whether scores go from 0 to 1."))


class EmbeddingSchema(AttentionSchema):
    """A request of `POST /embed`."""

    prompt = PromptField()
    layers = Several(
        Whole(),
        most=MAX_LAYERS,
        required=True,
        metadata=says("Which layers; 0 = what goes into the first, -1 = the last."),
    )
    pooling = Several(
        Choice(Pooling),
        most=len(Pooling),
        required=True,
        metadata=says(f"How tokens become one vector: {', '.join(Pooling)}."),
    )
    tokens = Flag(load_default=False, metadata=says("Whether to tell the prompt's tokens."))
    normalize = Flag(load_default=False, metadata=says("Whether vectors have length 1."))


class SemanticSchema(AttentionSchema):
    """What requests for semantic embeddings share."""

    representation = Choice(
        Representation,
        required=True,
        metadata=says("Whether a text is a query, a document for queries, or like the others."),
    )
    compress_to_size = Whole(load_default=None, metadata=says("Refused unless it is null."))
    normalize = Flag(load_default=False, metadata=says("Whether vectors have length 1."))


class SemanticEmbeddingSchema(SemanticSchema):
    """A request of `POST /semantic_embed`."""

    prompt = PromptField()


class BatchSemanticEmbeddingSchema(SemanticSchema):
    """A request of `POST /batch_semantic_embed`."""

    prompts = Several(
        PromptItems(required=True),
        most=MAX_PROMPTS,
        required=True,
        metadata=says("Strings, or lists of texts, token ids and pictures."),
    )
