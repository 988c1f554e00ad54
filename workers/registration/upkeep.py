"""Threads that keep the nodes told, one each: a node that hangs is in nobody's way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

import redis

from workers.contract.fleet import Fleet
from workers.contract.node_ledger import NodeLedger
from workers.contract.public_url import public_url
from workers.contract.redis_client import Client
from workers.contract.registrations import node_address
from workers.contract.settings import Settings
from workers.registration.lease import RegistrarLease
from workers.registration.node_client import NodeClient
from workers.registration.registrar import Registrar

TICK_S = 1.0
LEAVE_S = 8.0
"""Longest wait for nodes when a worker ends: a call that runs, and the farewell."""

log = logging.getLogger(__name__)


class Upkeep:
    """What one worker does about nodes.

    Args:
        registrars: one for each node.
        cid: the worker's.
        report: says in Redis that the worker drains; called before nodes are told.
        tick_s: between two looks at what is due.
    """

    def __init__(
        self,
        registrars: Sequence[Registrar],
        cid: str,
        report: Callable[[], None],
        tick_s: float = TICK_S,
    ) -> None:
        self._cid = cid
        self._report = report
        self._tick_s = tick_s
        self._stopped = threading.Event()
        # Of kind daemon: one that hangs in a call does not keep the process alive.
        self._threads = [
            threading.Thread(target=self._keep, args=(each,), name="registrar", daemon=True)
            for each in registrars
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin to say farewell; returns at once."""
        self._stopped.set()

    def join(self, timeout_s: float = LEAVE_S) -> None:
        """Wait until every node was told, or for so long."""
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))

    def _keep(self, registrar: Registrar) -> None:
        while not self._stopped.wait(self._tick_s):
            _guarded(registrar.tick)
        # Otherwise another worker, which sees this one ready, would register it once more.
        _guarded(self._report)
        _guarded(lambda: registrar.farewell(self._cid))


def make_upkeep(
    settings: Settings, client: Client, *, worker: str, cid: str, report: Callable[[], None]
) -> Upkeep:
    """The upkeep of all nodes in the settings.

    Args:
        settings: of the service.
        client: connection to its Redis.
        worker: this worker's name.
        cid: this worker's id at nodes.
        report: says in Redis how this worker is.
    """

    def registrar(url: str) -> Registrar:
        address = node_address(url)
        return Registrar(
            NodeClient(address),
            NodeLedger(client, str(address)),
            RegistrarLease(client, str(address), worker),
            Fleet(client),
            project=settings.project,
            public_url=public_url(settings),
        )

    return Upkeep([registrar(url) for url in dict.fromkeys(settings.node_url)], cid, report)


def _guarded(act: Callable[[], None]) -> None:
    try:
        act()
    except redis.RedisError as error:
        log.warning("registration with nodes: %s", error)
