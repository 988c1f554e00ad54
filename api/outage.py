"""Bears short absences of Redis, such as its restart, where a client waits for something anyway."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import redis

PATIENCE_S = 20.0
RETRY_S = 0.25

_T = TypeVar("_T")

log = logging.getLogger(__name__)


def patiently(look: Callable[[], _T]) -> _T:
    """What a look into Redis gives, tried again for a while where Redis does not answer.

    Args:
        look: reads only, so that doing it again changes nothing.

    Raises:
        redis.RedisError: it has not answered for `PATIENCE_S`.
    """
    deadline = time.monotonic() + PATIENCE_S
    is_first = True
    while True:
        try:
            return look()
        except redis.RedisError as error:
            if time.monotonic() >= deadline:
                raise
            if is_first:
                log.warning("Redis does not answer, trying again: %s", error)
            is_first = False
        time.sleep(RETRY_S)
