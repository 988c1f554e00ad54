"""The one Celery task, and the life of the worker process around it, whatever the worker makes."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from celery import Celery, signals

from workers.contract.settings import Settings
from workers.contract.tickets import RUN_NEXT_JOB
from workers.host import WorkerHost
from workers.models.unusable import ModelUnusable
from workers.settings import worker_id_at_nodes, worker_name, worker_settings

log = logging.getLogger(__name__)


class WorkerProcess:
    """Ties a host's life to that of the Celery worker that runs in this process.

    Args:
        make_host: makes the host for settings, the worker's name, and its id at nodes.
    """

    def __init__(self, make_host: Callable[[Settings, str, str], WorkerHost]) -> None:
        self._make_host = make_host
        self._host: WorkerHost | None = None

    def install(self, app: Celery) -> None:
        """Define the task, and hear of the worker's start and end."""
        app.task(self.run_next_job, name=RUN_NEXT_JOB)
        # Celery would forget bound methods that nobody else holds.
        signals.worker_init.connect(self._start, weak=False)
        signals.worker_shutting_down.connect(self._stop, weak=False)
        signals.worker_shutdown.connect(self._leave, weak=False)

    def run_next_job(self) -> None:
        """Run the job that is next in line; a ticket of that is all that Celery carries."""
        assert self._host is not None, "worker_init came first"
        self._host.run_next_job()

    def _start(self, **_: Any) -> None:
        """Load the model before Celery takes tickets (`worker_process_init` never fires here)."""
        settings = worker_settings()
        self._host = host = self._make_host(settings, worker_name(), worker_id_at_nodes(settings))
        host.announce()
        try:
            host.serve()
        except ModelUnusable as error:
            log.error("%s", error)
            host.leave()
            sys.stderr.flush()
            os._exit(os.EX_CONFIG)

    def _stop(self, **_: Any) -> None:
        """Hand running jobs back, so that Celery has nothing to wait for."""
        if self._host is not None:
            self._host.stop()

    def _leave(self, **_: Any) -> None:
        if self._host is not None:
            self._host.leave()
