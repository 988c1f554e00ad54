"""Tells of models as this protocol's clients want to know them."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from api.services import Services
from api.standard.models import context_length
from workers.contract.fleet import WorkerKind

API_VERSION = "1.19.0"
"""Of the vendor's interface: its client takes none below, and none from 2 on."""


class AvailableModelSchema(Schema):
    """A model that requests can name; documentation, `available_models` writes it."""

    name = fields.String()
    description = fields.String()
    max_context_size = fields.Integer(metadata={"description": "Tokens, prompt included."})
    hostings = fields.List(fields.String())
    image_support = fields.Boolean(metadata={"description": "Whether prompts may have images."})
    qa_support = fields.Boolean()
    summarization_support = fields.Boolean()
    embedding_types = fields.List(fields.String())
    maximum_completion_tokens = fields.Integer(allow_none=True)
    aligned = fields.Boolean()


def available_models(made: Services) -> list[dict[str, Any]]:
    """The text models of this service, but for those whose context no worker has told yet."""
    kinds = made.submission.models()
    models = [_model(made, name) for name, kind in kinds.items() if kind is WorkerKind.TEXT]
    return [each for each in models if each["max_context_size"] is not None]


def _model(made: Services, name: str) -> dict[str, Any]:
    cards = made.fleet.workers(name)
    return {
        "name": name,
        "description": f"{name}, of the project {made.settings.project}",
        "max_context_size": context_length(made.settings, cards),
        "hostings": [],
        "image_support": any(card.reads_pictures for card in cards),
        "qa_support": False,
        "summarization_support": False,
        "embedding_types": [],
        # There is no bound but the context.
        "maximum_completion_tokens": None,
        "aligned": False,
    }
