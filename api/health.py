"""Whether the service lives, and whether it can work."""

from __future__ import annotations

from flask import Response
from flask_smorest import Blueprint
from marshmallow import Schema, fields

from api.documentation import document
from api.neodim.renderer import render_error
from api.neodim.schema import NeodimErrorSchema
from api.protocols import Room
from api.replies import json_reply
from api.services import services
from workers.contract.errors import ModelLoading

blueprint = Blueprint("health", __name__, description="Health of the service")


class HealthSchema(Schema):
    """The service's health."""

    status = fields.String()


class ReadySchema(HealthSchema):
    """What the service is ready for."""

    model = fields.String()
    workers = fields.Integer(metadata={"description": "Those that are ready for that model."})
    instance = fields.String()


@document(blueprint, "/health/live", "GET", answers={200: HealthSchema}, errors={})
def live() -> Response:
    """Whether this process answers; needs no key and asks nobody else."""
    return json_reply({"status": "live"})


@document(
    blueprint,
    "/health/ready",
    "GET",
    answers={200: ReadySchema},
    errors={(401, 503): NeodimErrorSchema},
)
def ready() -> Response:
    """Whether Redis answers and a worker is ready for each model."""
    made = services()
    model = made.settings.model_name
    for each in made.settings.model_names:
        if not made.fleet.ready(each):
            raise ModelLoading(f"the model {each} is not ready yet")
    return json_reply(
        {
            "status": "ready",
            "model": model,
            "workers": len(made.fleet.ready(model)),
            "instance": made.settings.instance,
        }
    )


ROOM = Room(blueprint=blueprint, prefixes=("/health/",), error_body=render_error)
