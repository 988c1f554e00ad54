"""The fields of `/v1/jobs`."""

from __future__ import annotations

from marshmallow import Schema, fields

from api.fields import Object, Text
from api.request_schema import RequestSchema
from workers.contract.job_record import JobState


class SubmissionSchema(RequestSchema):
    """What is submitted: a request of some protocol."""

    protocol = Text(required=True, metadata={"example": "neodim"})
    request = Object(
        required=True, metadata={"description": "What the protocol's own endpoint would be sent."}
    )


class ProgressSchema(Schema):
    """How far a job is: in tokens over all its sequences, or in steps over all its pictures."""

    tokens_generated = fields.Integer(metadata={"description": "Of text."})
    tokens_expected = fields.Integer(metadata={"description": "Of text."})
    passes_done = fields.Integer(metadata={"description": "Over texts that are only read."})
    passes_expected = fields.Integer(metadata={"description": "0 until the worker knows."})
    steps_done = fields.Integer(metadata={"description": "Of pictures."})
    steps_expected = fields.Integer(metadata={"description": "Of pictures."})


class JobErrorSchema(Schema):
    """Why a job failed."""

    code = fields.String()
    message = fields.String()


class JobSchema(Schema):
    """A job; documentation, `renderer` writes it."""

    id = fields.String()
    protocol = fields.String()
    model = fields.String()
    state = fields.String(metadata={"enum": [each.value for each in JobState]})
    created_at = fields.DateTime()
    started_at = fields.DateTime(allow_none=True)
    finished_at = fields.DateTime(allow_none=True)
    attempt = fields.Integer(metadata={"description": "0 until a worker takes the job."})
    worker = fields.String(allow_none=True)
    is_possible = fields.Boolean(
        metadata={"description": "Whether a worker serves the job's model now."}
    )
    progress = fields.Nested(ProgressSchema)
    result = fields.Dict(
        allow_none=True, metadata={"description": "What the protocol's own endpoint would answer."}
    )
    partial = fields.Boolean(  # type: ignore[assignment]  # marshmallow takes it off the class
        metadata={"description": "There, and true, when the result is of a cancelled job."}
    )
    error = fields.Nested(JobErrorSchema, allow_none=True)


class ErrorDetailSchema(Schema):
    """An error, as OpenAI's clients read it."""

    message = fields.String()
    type = fields.String()
    code = fields.String()
    param = fields.String(allow_none=True)


class StandardErrorSchema(Schema):
    """An error under /v1."""

    code = fields.Integer()
    message = fields.String()
    error = fields.Nested(ErrorDetailSchema)
