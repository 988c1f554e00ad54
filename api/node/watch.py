"""Looks after a request that was sent on, while its own thread waits for the server."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import redis

from api.connection import Connection
from api.node.exchange import Exchange

SLICE_S = 0.5
"""How long a client's leaving can go unnoticed."""

KEEP_S = 10.0
"""Between two renewals of the request's mark."""

log = logging.getLogger(__name__)


class Watch:
    """A thread, or under gevent a greenlet, for one exchange.

    Args:
        exchange: ended when its client leaves.
        connection: the client's.
        keep: called now and then: the exchange goes on.
    """

    def __init__(
        self, exchange: Exchange, connection: Connection, keep: Callable[[], None]
    ) -> None:
        self._exchange = exchange
        self._connection = connection
        self._keep = keep
        self._stopped = threading.Event()
        self.client_left = False
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def stop(self) -> None:
        """The exchange has ended."""
        self._stopped.set()

    def _run(self) -> None:
        keep_at = time.monotonic() + KEEP_S
        while not self._stopped.wait(SLICE_S):
            if not self._connection.is_open():
                self.client_left = True
                self._exchange.abort()
                return
            if time.monotonic() >= keep_at:
                keep_at = time.monotonic() + KEEP_S
                self._renew()

    def _renew(self) -> None:
        try:
            self._keep()
        except redis.RedisError as error:
            log.warning("a forwarded request is not counted any more: %s", error)
