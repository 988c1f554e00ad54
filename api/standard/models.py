"""What models there are: this service's own, and those of servers that registered here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.services import Services
from api.settings import Settings
from workers.contract.errors import UnknownModel
from workers.contract.fleet import WorkerCard, WorkerKind, WorkerState
from workers.contract.public_url import public_url
from workers.contract.registrations import CALLS

ABSENT = "absent"
"""State of a model that no worker serves, though the settings name it."""

_STATES = (WorkerState.READY, WorkerState.LOADING, WorkerState.DRAINING)


def list_models(made: Services) -> list[dict[str, Any]]:
    """Every model that a request can name, each once; one's own come first and win."""
    own = [_own_model(made, name, kind) for name, kind in made.submission.models().items()]
    if made.node is None:
        return own
    known = {each["id"] for each in own}
    others = (each for each in made.node.registry.models() if each.model not in known)
    return own + [
        _model(
            name=each.model,
            created_ms=each.registered_ms,
            owner=each.project,
            url=each.api,
            kind=int(each.type),
            context_length=None,
            state=WorkerState.READY,
            n_workers=each.n_servers,
        )
        for each in others
    ]


def named_model(made: Services, name: str) -> dict[str, Any]:
    """One of them.

    Raises:
        UnknownModel: there is none of that name.
    """
    models = list_models(made)
    for each in models:
        if each["id"] == name:
            return each
    known = ", ".join(each["id"] for each in models)
    raise UnknownModel(f"{name[:100]!r} is not served here; known: {known}")


def _own_model(made: Services, name: str, kind: WorkerKind) -> dict[str, Any]:
    model_type, path = CALLS[kind]
    cards = made.fleet.workers(name)
    ready = [card for card in cards if card.state is WorkerState.READY]
    return _model(
        name=name,
        created_ms=min((card.started_ms for card in cards), default=made.started_ms),
        owner=made.settings.project,
        url=public_url(made.settings) + path,
        kind=int(model_type),
        context_length=context_length(made.settings, cards) if kind is WorkerKind.TEXT else None,
        state=next((state for state in _STATES if any(c.state is state for c in cards)), ABSENT),
        n_workers=len(ready),
    )


def context_length(settings: Settings, cards: Sequence[WorkerCard]) -> int | None:
    """Tokens that a text may have; None while no worker has found out."""
    lengths = [card.max_length for card in cards if card.max_length]
    return max(lengths, default=settings.max_length)


def _model(
    *,
    name: str,
    created_ms: int,
    owner: str,
    url: str,
    kind: int,
    context_length: int | None,
    state: str,
    n_workers: int,
) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": created_ms // 1000,
        "owned_by": owner,
        "model": name,
        "url": url,
        "type": kind,
        "context_length": context_length,
        "state": state,
        "workers": n_workers,
    }
