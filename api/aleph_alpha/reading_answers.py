"""What OpenAPI says of the answers that `reading_renderer` writes."""

from __future__ import annotations

from marshmallow import Schema, fields

from api.fields import Object


class JudgementSchema(Schema):
    """How likely a text was; natural logarithms."""

    log_probability = fields.Float()
    log_perplexity = fields.Float(metadata={"description": "The same, negated."})
    log_perplexity_per_token = fields.Float()
    log_perplexity_per_character = fields.Float()
    correct_greedy = fields.Boolean(
        metadata={"description": "Whether each of its tokens was the likeliest one."}
    )
    token_count = fields.Integer()
    character_count = fields.Integer()
    completion = fields.String(metadata={"description": "What the likeliest tokens spell."})


class EvaluationAnswerSchema(Schema):
    """The answer to `POST /evaluate`."""

    model_version = fields.String()
    result = fields.Nested(JudgementSchema)
    num_tokens_prompt_total = fields.Integer(
        metadata={"description": "Tokens of the prompt and of the text."}
    )


class ItemScoresSchema(Schema):
    """How much each part of an item speaks for the target."""

    type = fields.String(metadata={"enum": ["text", "token_ids", "image", "target"]})
    scores = fields.List(
        fields.Raw(),
        metadata={"description": "Objects with start or rect and a score; numbers of token_ids."},
    )


class TargetExplanationSchema(Schema):
    """What speaks for a target."""

    target = fields.String()
    items = fields.List(fields.Nested(ItemScoresSchema))


class ExplanationAnswerSchema(Schema):
    """The answer to `POST /explain`."""

    model_version = fields.String()
    explanations = fields.List(fields.Nested(TargetExplanationSchema))


class EmbeddingAnswerSchema(Schema):
    """The answer to `POST /embed`."""

    model_version = fields.String()
    embeddings = Object(metadata={"description": "Vectors, by layer_N and then by pooling."})
    tokens = fields.List(fields.String(), allow_none=True)
    num_tokens_prompt_total = fields.Integer()


class SemanticAnswerSchema(Schema):
    """The answer to `POST /semantic_embed`."""

    model_version = fields.String()
    embedding = fields.List(fields.Float())
    num_tokens_prompt_total = fields.Integer()


class BatchSemanticAnswerSchema(Schema):
    """The answer to `POST /batch_semantic_embed`."""

    model_version = fields.String()
    embeddings = fields.List(fields.List(fields.Float()))
    num_tokens_prompt_total = fields.Integer()
