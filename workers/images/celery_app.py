"""The Celery application of an image worker: `celery -A workers.images.celery_app worker`."""

from __future__ import annotations

from workers.contract.tickets import make_celery
from workers.settings import worker_settings

app = make_celery(worker_settings().redis_url or "")
app.conf.imports = ("workers.images.tasks",)
