"""The one Celery task, and the worker process around it."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from celery import signals

from workers.celery_app import app
from workers.contract.tickets import RUN_NEXT_JOB
from workers.host import WorkerHost
from workers.models.loader import ModelUnusable
from workers.models.serving import make_ready
from workers.settings import worker_id_at_nodes, worker_name, worker_settings

log = logging.getLogger(__name__)

_host: WorkerHost | None = None


@app.task(name=RUN_NEXT_JOB)
def run_next_job() -> None:
    """Run the job that is next in line; a ticket of that is all that Celery carries."""
    assert _host is not None, "worker_init came first"
    _host.run_next_job()


@signals.worker_init.connect
def _start(**_: Any) -> None:
    """Load the model before Celery takes tickets (`worker_process_init` never fires here)."""
    global _host
    settings = worker_settings()
    _host = WorkerHost(settings, worker_name(), worker_id_at_nodes(settings))
    _host.announce()
    try:
        _host.serve(*make_ready(settings))
    except ModelUnusable as error:
        log.error("%s", error)
        _host.leave()
        sys.stderr.flush()
        os._exit(os.EX_CONFIG)


@signals.worker_shutting_down.connect
def _stop(**_: Any) -> None:
    """Hand running jobs back, so that Celery has nothing to wait for."""
    if _host is not None:
        _host.stop()


@signals.worker_shutdown.connect
def _leave(**_: Any) -> None:
    if _host is not None:
        _host.leave()
