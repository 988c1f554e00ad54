"""Where a worker process learns what it is: the service's settings and its own name."""

from __future__ import annotations

import os
import socket
from functools import cache

from workers.contract.settings import Settings, read_settings


@cache
def worker_settings() -> Settings:
    """The settings that this process was started with."""
    return read_settings()


def worker_name() -> str:
    """This process's name, the same after a restart only if nothing else can have it."""
    return f"{socket.gethostname()}-{os.getpid()}"
