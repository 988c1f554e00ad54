"""What this service needs to act as a node; rooms find it as `services().node`.

A room whose request names a model that is not served here asks it before it says that there is
none:

    node = services().node
    if node is not None:
        reply = node.forwarding.forward(
            model, request.path, read_body(request), request.headers, Connection(request.environ)
        )
        if reply is not None:
            return reply
    raise UnknownModel(...)

`node.registry.models()` are listed beside one's own, which win where names are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from api.node.forwarding import Forwarding
from api.node.load import Load
from api.node.registry import Registry
from api.settings import Settings
from workers.contract.redis_client import Client


@dataclass(frozen=True, slots=True)
class Node:
    """A service that acts as a node."""

    registry: Registry
    forwarding: Forwarding


def make_node(settings: Settings, client: Client) -> Node | None:
    """What acting as a node takes; None = this service does not.

    Args:
        settings: of the service.
        client: connection to its Redis.
    """
    if not settings.node_key:
        return None
    registry = Registry(client)
    return Node(registry, Forwarding(registry, Load(client), settings.forward_timeout_s))
