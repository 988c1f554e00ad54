"""Wakes whoever waits for news of a job; all of them together need one connection to Redis."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from workers.contract.news import POLL_S, listen
from workers.contract.redis_client import Client

RETRY_S = 0.5

log = logging.getLogger(__name__)


class Waiter:
    """One who waits.

    Args:
        wants_end: whether nothing but a job's end is news.
    """

    def __init__(self, *, wants_end: bool) -> None:
        self.wants_end = wants_end
        self._rung = threading.Event()

    def ring(self) -> None:
        """Say that there is news."""
        self._rung.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for news since the last wait, for so long; whether there is any."""
        has_news = self._rung.wait(timeout_s)
        self._rung.clear()
        return has_news


class Bell:
    """Listens for news in a thread of its own, for as long as somebody waits.

    Args:
        client: gives the connection.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiters: dict[str, set[Waiter]] = {}
        self._lock = threading.Lock()
        self._listening = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def waiter(self, *job_ids: str, wants_end: bool) -> Iterator[Waiter]:
        """Someone who waits for news of some jobs.

        What is looked up within the block is up to date or will be rung for. News may get lost
        with a connection, so who waits should look again after some seconds in any case.
        """
        waiter = Waiter(wants_end=wants_end)
        with self._lock:
            for job_id in job_ids:
                self._waiters.setdefault(job_id, set()).add(waiter)
            self._start()
        self._listening.wait(POLL_S)
        try:
            yield waiter
        finally:
            with self._lock:
                for job_id in job_ids:
                    self._waiters[job_id].discard(waiter)
                    if not self._waiters[job_id]:
                        del self._waiters[job_id]

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="bell", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                self._listen()
                return
            except redis.RedisError as error:
                log.warning("cannot hear of jobs' news, trying again: %s", error)
            self._listening.clear()
            if self._may_end():
                return
            time.sleep(RETRY_S)

    def _listen(self) -> None:
        """Ring for news until nobody waits for any."""
        for news in listen(self._client):
            if news is None:
                if not self._listening.is_set():
                    self._listening.set()
                    self._ring_all()
                elif self._may_end():
                    return
                continue
            with self._lock:
                waiters = tuple(self._waiters.get(news.job_id, ()))
            for waiter in waiters:
                if news.is_end or not waiter.wants_end:
                    waiter.ring()

    def _may_end(self) -> bool:
        """Whether nobody waits; the next one who does starts another thread then."""
        with self._lock:
            if self._waiters:
                return False
            self._listening.clear()
            self._thread = None
            return True

    def _ring_all(self) -> None:
        """Let everybody look: something may have happened while nobody listened."""
        with self._lock:
            waiters = [each for some in self._waiters.values() for each in some]
        for waiter in waiters:
            waiter.ring()
