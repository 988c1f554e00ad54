"""The paths at which model servers register, behind the node's own key."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from flask import Response, request
from flask_smorest import Blueprint
from marshmallow import Schema

from api.documentation import document
from api.jobs.schema import StandardErrorSchema
from api.json_body import read_json
from api.node.registry import Registry
from api.node.schema import (
    DoneSchema,
    RegisterModelSchema,
    RegisterProjectSchema,
    UnregisterModelSchema,
    UnregisterProjectSchema,
)
from api.protocols import Room
from api.replies import json_reply
from api.request_schema import load
from api.services import services
from api.standard_error import render_error
from workers.contract.registrations import (
    REGISTRATION_PATHS,
    ModelType,
    Registration,
    server_id,
)

log = logging.getLogger(__name__)

blueprint = Blueprint("node", __name__, description="Registration of model servers")

_document = partial(
    document,
    blueprint,
    method="POST",
    answers={200: DoneSchema},
    errors={(400, 401, 413, 503): StandardErrorSchema},
)


@_document(path=f"{REGISTRATION_PATHS}model/register", body=RegisterModelSchema)
def register_model() -> Response:
    """Register one server of a model, or update it; to be repeated every minute."""
    fields = _read(RegisterModelSchema())
    server = _registration(**fields)
    if server.id not in _registry().ids():
        log.warning("%s registered at %s", server.model, server.api)
    _registry().add([server])
    return _done()


@_document(path=f"{REGISTRATION_PATHS}model/unregister", body=UnregisterModelSchema)
def unregister_model() -> Response:
    """Forget one server of a model, whether it is known or not."""
    fields = _read(UnregisterModelSchema())
    log.warning("%s unregistered (%s)", fields["model"], fields["cid"] or "no cid")
    _registry().remove([server_id(**fields)])
    return _done()


@_document(path=f"{REGISTRATION_PATHS}project/register", body=RegisterProjectSchema)
def register_project() -> Response:
    """Register all servers of a project, in place of those that it had."""
    fields = _read(RegisterProjectSchema())
    project = fields["project"]
    servers = [_registration(project=project, **each) for each in fields["models"]]
    known = _registry().ids()
    if any(each.id not in known for each in servers):
        log.warning("project %s registered with %d servers", project, len(servers))
    _registry().replace_project(project, servers)
    return _done()


@_document(path=f"{REGISTRATION_PATHS}project/unregister", body=UnregisterProjectSchema)
def unregister_project() -> Response:
    """Forget all servers of a project, whether it is known or not."""
    _registry().remove_project(_read(UnregisterProjectSchema())["project"])
    return _done()


def _read(schema: Schema) -> dict[str, Any]:
    return load(schema, read_json(request, needs_media_type=False))


def _registration(*, type: int, **fields: str) -> Registration:
    return Registration(type=ModelType(type), **fields)


def _registry() -> Registry:
    node = services().node
    assert node is not None, "these paths are served by a node only"
    return node.registry


def _done() -> Response:
    return json_reply({"code": 0, "message": "ok"})


ROOM = Room(blueprint=blueprint, prefixes=(REGISTRATION_PATHS,), error_body=render_error)
