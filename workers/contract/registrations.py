"""What a model server says of itself to a node of the AI model interface standard."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import msgspec

from workers.contract.fleet import WorkerKind
from workers.contract.http_address import HttpAddress, parse_http_url

REGISTRATION_PATHS = "/api/v0/ai/"
"""Start of the paths at which a node takes registrations."""

NODE_PORT = 6000
"""Where a node listens unless its URL says otherwise."""


class ModelType(IntEnum):
    """What a model makes, as the standard numbers it."""

    TEXT = 0
    TEXT_TO_IMAGE = 1
    IMAGE_EDITING = 2


CALLS: Mapping[WorkerKind, tuple[ModelType, str]] = {
    WorkerKind.TEXT: (ModelType.TEXT, "/v1/chat/completions"),
    WorkerKind.IMAGE: (ModelType.TEXT_TO_IMAGE, "/v1/images/generations"),
    WorkerKind.EDITING: (ModelType.IMAGE_EDITING, "/v1/images/edits"),
}
"""What each kind of worker is to a node, and where it is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One server of one model.

    Args:
        project: to which the model belongs.
        model: name by which it is asked for.
        api: the full URL to call.
        type: what it makes.
        cid: tells servers of the same model apart, "" = there is just one.
    """

    project: str
    model: str
    api: str
    type: ModelType = ModelType.TEXT
    cid: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes it another one; a registration with the same identity is an update."""
        return self.project, self.model, self.cid

    @property
    def id(self) -> str:
        """The identity as a short name."""
        return server_id(*self.identity)


def server_id(project: str, model: str, cid: str) -> str:
    """A short name for what makes a server another one."""
    return digest(project, model, cid)


def node_address(url: str) -> HttpAddress:
    """Where a node answers, given its URL in the settings.

    Raises:
        ValueError: it is no URL of HTTP.
    """
    return parse_http_url(url, NODE_PORT)


def digest(*parts: str) -> str:
    """24 hex digits that stand for these texts."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:24]
