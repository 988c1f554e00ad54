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
        timeout_s: for how long the answer's first bytes are waited for. The exchange itself only
            bounds the wait for any bytes, and a head can go on for ever.

    Attributes:
        client_left: whether the exchange was ended since nobody waits for it.
        is_late: whether it was ended since it did not begin in time.
    """

    def __init__(
        self,
        exchange: Exchange,
        connection: Connection,
        keep: Callable[[], None],
        timeout_s: float,
    ) -> None:
        self._exchange = exchange
        self._connection = connection
        self._keep = keep
        self._begin_by = time.monotonic() + timeout_s
        self._stopped = threading.Event()
        self.client_left = False
        self.is_late = False
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def stop(self) -> None:
        """The exchange has ended."""
        self._stopped.set()

    def _run(self) -> None:
        keep_at = time.monotonic() + KEEP_S
        while not self._stopped.wait(SLICE_S):
            if not self._connection.is_open():
                self.client_left = True
            elif not self._exchange.has_begun and time.monotonic() >= self._begin_by:
                self.is_late = True
            if self.client_left or self.is_late:
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
