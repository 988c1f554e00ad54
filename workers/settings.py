"""Where a worker process learns what it is: the service's settings and its own name."""

from __future__ import annotations

import os
import socket
from functools import cache

from workers.contract.settings import Settings, read_settings
from workers.registration.container import is_main_program, worker_cid

ONLY_WORKER = "worker"
"""What supervisor calls the worker of a service that has one."""

OUR_COMMANDS = ("start.sh", "workers.launcher", "workers.celery_app")
"""What a container of this service runs first."""


@cache
def worker_settings() -> Settings:
    """The settings that this process was started with."""
    return read_settings()


def worker_name() -> str:
    """This process's name, the same after a restart only if nothing else can have it."""
    return f"{socket.gethostname()}-{os.getpid()}"


def worker_id_at_nodes(settings: Settings) -> str:
    """Twelve hex digits by which nodes know this worker, the same after a restart.

    Supervisor says which of the service's workers this is; one that was started by hand cannot
    be told from others like it but by its process, so its id lasts only as long.
    """
    label = os.environ.get("SUPERVISOR_PROCESS_NAME")
    return worker_cid(
        hostname=socket.gethostname(),
        service=settings.data_dir,
        worker=label or f"process {os.getpid()}",
        has_container=label in (None, ONLY_WORKER) and is_main_program(OUR_COMMANDS),
    )
