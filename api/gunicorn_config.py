"""How gunicorn runs the API: `gunicorn --config python:api.gunicorn_config`."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from api.settings import read_settings

_settings = read_settings()
_host = _settings.listen_address

wsgi_app = "api.app:create_app()"
bind = f"[{_host}]:{_settings.listen_port}" if ":" in _host else f"{_host}:{_settings.listen_port}"
# A gevent worker makes the standard library cooperative before it loads the application.
worker_class = "api.gunicorn_worker.Worker"
workers = _settings.api_processes
worker_connections = 1000
keepalive = 30
graceful_timeout = 8
timeout = 120
accesslog = None
errorlog = "-"
loglevel = "warning"
control_socket_disable = True

_CONNECTION_GRACE_S = 5
"""Of open requests at a stop: a worker that ends them then has ended in the master's time."""


def post_worker_init(worker: Any) -> None:
    """Called in each worker before it serves."""
    worker.cfg.set("graceful_timeout", _CONNECTION_GRACE_S)


def on_exit(server: Any) -> None:
    """Called in the master before it ends: a worker that had to be killed must not outlive it."""
    for pid in tuple(server.WORKERS):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
