from __future__ import annotations

from typing import Any

import pytest

from workers.contract.fleet import WorkerCard, WorkerKind, WorkerState
from workers.contract.registrations import Registration
from workers.registration.catalogue import registrations_of


def card(**fields: Any) -> WorkerCard:
    known = {"name": "w", "model": "m", "state": WorkerState.READY, "slots": 1, "max_length": 8}
    known |= {"host": "h", "pid": 1, "started_ms": 0, "cid": "a" * 12}
    return WorkerCard(**{**known, **fields})


def test_only_workers_that_are_ready_are_registered() -> None:
    cards = [card(cid=state, state=state) for state in WorkerState]

    made = registrations_of(cards, "P", "http://h:1")

    assert made == [
        Registration(project="P", model="m", api="http://h:1/v1/chat/completions", cid="ready")
    ]


@pytest.mark.parametrize(
    ("kind", "number", "path"),
    [
        (WorkerKind.TEXT, 0, "/v1/chat/completions"),
        (WorkerKind.IMAGE, 1, "/v1/images/generations"),
        (WorkerKind.EDITING, 2, "/v1/images/edits"),
    ],
)
def test_a_kind_has_a_number_and_a_path(kind: WorkerKind, number: int, path: str) -> None:
    (made,) = registrations_of([card(kind=kind)], "P", "http://h:1")

    assert (made.type, made.api) == (number, f"http://h:1{path}")


def test_the_order_does_not_depend_on_that_of_the_cards() -> None:
    cards = [card(model=model, cid=cid) for model in "ab" for cid in "xy"]

    assert registrations_of(cards, "P", "") == registrations_of(cards[::-1], "P", "")
