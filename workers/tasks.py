"""What a text worker's Celery application loads: the task, and the host that does its jobs."""

from __future__ import annotations

from workers.celery_app import app
from workers.process import WorkerProcess
from workers.text_host import TextHost

WorkerProcess(TextHost).install(app)
