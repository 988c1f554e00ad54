"""What an image worker's Celery application loads: the task, and the host that does its jobs."""

from __future__ import annotations

from workers.images.celery_app import app
from workers.images.host import ImageHost
from workers.process import WorkerProcess

WorkerProcess(ImageHost).install(app)
