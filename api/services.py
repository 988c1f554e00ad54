"""What requests work with: made once per process, reached through the application."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Flask, current_app

from api.bell import Bell
from api.fleet_view import FleetView
from api.model_tokenizers import ModelTokenizers
from api.node.acting import Node
from api.protocols import Protocols
from api.settings import Settings
from api.submission import Submission
from workers.contract.errors import JobNotFound
from workers.contract.job_record import JobRecord
from workers.contract.pictures import PictureStore
from workers.contract.store import JobStore

_KEY = "neodim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything that a request may need.

    Args:
        started_ms: when this process started, milliseconds since the epoch.
        node: models of other servers, and the way there; None = this service is no node.
    """

    settings: Settings
    store: JobStore
    bell: Bell
    fleet: FleetView
    submission: Submission
    protocols: Protocols
    pictures: PictureStore
    tokenizers: ModelTokenizers
    started_ms: int
    node: Node | None = None

    def own_job(self, job_id: str, owner: str) -> JobRecord:
        """A job of this owner.

        Raises:
            JobNotFound: there is none of that id, or it is another's.
        """
        record = self.store.get(job_id)
        if record.owner != owner:
            raise JobNotFound(job_id)
        return record


def install(app: Flask, made: Services) -> None:
    """Give them to the application."""
    app.extensions[_KEY] = made


def services() -> Services:
    """Those of the current application."""
    found: Services = current_app.extensions[_KEY]
    return found
