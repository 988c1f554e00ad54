"""What there is to register: the workers that are ready, as a node wants to know them."""

from __future__ import annotations

from collections.abc import Iterable

from workers.contract.fleet import WorkerCard, WorkerState
from workers.contract.registrations import CALLS, Registration


def registrations_of(
    cards: Iterable[WorkerCard], project: str, public_url: str
) -> list[Registration]:
    """One registration for each worker that is ready, in a fixed order.

    Args:
        cards: of every worker.
        project: to which their models belong.
        public_url: start of the URLs at which they are called.
    """
    ready = (card for card in cards if card.state is WorkerState.READY)
    made = (_registration_of(card, project, public_url) for card in ready)
    return sorted(made, key=lambda each: each.identity)


def _registration_of(card: WorkerCard, project: str, public_url: str) -> Registration:
    kind, path = CALLS[card.kind]
    return Registration(
        project=project, model=card.model, api=public_url + path, type=kind, cid=card.cid
    )
