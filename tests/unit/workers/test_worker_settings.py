"""By what a worker process goes."""

from __future__ import annotations

import re

import pytest

from workers.contract.settings import Settings
from workers.settings import worker_id_at_nodes

VARIABLE = "SUPERVISOR_PROCESS_NAME"


def test_an_id_at_nodes_belongs_to_one_worker_of_one_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = []
    for name in ("worker-1", "worker-2", "worker-1"):
        monkeypatch.setenv(VARIABLE, name)
        ids.append(worker_id_at_nodes(Settings(data_dir="/a")))
    other_service = worker_id_at_nodes(Settings(data_dir="/b"))

    assert ids[0] == ids[2]
    assert len({*ids, other_service}) == 3
    assert all(re.fullmatch("[0-9a-f]{12}", each) for each in ids)


def test_a_worker_started_by_hand_has_an_id_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

    assert re.fullmatch("[0-9a-f]{12}", worker_id_at_nodes(Settings(data_dir="/a")))
