"""Puts the API together: `create_app` is what gunicorn runs."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from flask import Flask
from flask_smorest import Api

from api import auth, cors, docs, errors, health, request_id, services
from api.aleph_alpha import model_routes, reading_routes, token_routes
from api.aleph_alpha import routes as aleph_alpha
from api.bell import Bell
from api.fleet_view import FleetView
from api.images import routes as images
from api.images.protocols import image_protocols
from api.jobs import routes as jobs
from api.model_tokenizers import ModelTokenizers
from api.neodim import routes as neodim
from api.node import routes as node
from api.node.acting import make_node
from api.protocols import Protocols, Room, error_answer_by_path
from api.settings import Settings, read_settings, redis_address
from api.standard import routes as standard
from api.submission import Submission
from workers.contract.fleet import Fleet
from workers.contract.pictures import PictureStore
from workers.contract.redis_client import connect
from workers.contract.settings import VERSION
from workers.contract.store import JobStore
from workers.contract.tickets import make_celery, send_ticket
from workers.contract.tokenizer_store import TokenizerStore

PROTOCOLS = (
    neodim.NEODIM,
    standard.CHAT,
    standard.COMPLETION,
    aleph_alpha.COMPLETION,
    *reading_routes.PROTOCOLS,
)
ROOMS: tuple[Room, ...] = (
    neodim.ROOM,
    standard.ROOM,
    aleph_alpha.ROOM,
    model_routes.ROOM,
    token_routes.ROOM,
    reading_routes.ROOM,
    images.ROOM,
    jobs.ROOM,
    health.ROOM,
)

error_answer_at = error_answer_by_path((*ROOMS, node.ROOM), default=neodim.ROOM)
"""How errors are answered, by path."""


def create_app(settings: Settings | None = None) -> Flask:
    """The application.

    Args:
        settings: None = those that this process was started with.

    Raises:
        ValueError: the settings cannot work.
    """
    settings = settings or read_settings()
    app = Flask("neodim", static_folder=None)
    app.config.update(_flask_config(settings))
    # A redirect would have to name a host, and the client's Host header is not to be trusted.
    app.url_map.merge_slashes = False
    request_id.install(app)
    cors.install(app)
    auth.install(app, auth.KeyRing(settings.api_key), _key_rings_of_rooms(settings))
    services.install(app, _make_services(settings))
    api = Api()
    # Every endpoint documents its own errors, in the shape of its protocol.
    api.DEFAULT_ERROR_RESPONSE_NAME = None
    api.init_app(app)
    for room in (*ROOMS, *_optional_rooms(settings)):
        api.register_blueprint(room.blueprint)
    docs.install(app, api.spec.to_dict())
    errors.install(app, error_answer_at)
    return app


def _optional_rooms(settings: Settings) -> list[Room]:
    return [node.ROOM] if settings.node_key else []


def _key_rings_of_rooms(settings: Settings) -> dict[str, auth.KeyRing]:
    """Rooms, by the start of their paths, that have keys of their own."""
    ring = auth.KeyRing(settings.node_key)
    return {prefix: ring for room in _optional_rooms(settings) for prefix in room.prefixes}


def _make_services(settings: Settings) -> services.Services:
    redis_url = redis_address(settings)
    client = connect(redis_url)
    store = JobStore(client, settings.result_ttl_s)
    pictures = PictureStore(client, settings.result_ttl_s)
    fleet = FleetView(Fleet(client))
    send = partial(send_ticket, make_celery(redis_url))
    submission = Submission(store, fleet, send, settings)
    return services.Services(
        settings=settings,
        store=store,
        bell=Bell(client),
        fleet=fleet,
        submission=submission,
        protocols=Protocols((*PROTOCOLS, *image_protocols(settings, pictures))),
        pictures=pictures,
        tokenizers=ModelTokenizers(TokenizerStore(client), submission),
        started_ms=int(time.time() * 1000),
        node=make_node(settings, client),
    )


def _flask_config(settings: Settings) -> dict[str, Any]:
    return {
        "MAX_CONTENT_LENGTH": settings.body_limit_bytes,
        "API_TITLE": "Neodim",
        "API_VERSION": VERSION,
        "OPENAPI_VERSION": "3.1.0",
        "OPENAPI_URL_PREFIX": "/",
        "OPENAPI_JSON_PATH": "openapi.json",
        "API_SPEC_OPTIONS": {
            "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
            # The empty alternative: a service may be started without keys.
            "security": [{"key": []}, {}],
        },
    }
