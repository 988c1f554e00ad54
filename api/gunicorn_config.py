"""How gunicorn runs the API: `gunicorn --config python:api.gunicorn_config`."""

from __future__ import annotations

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
# Idle connections are not closed before it, so it is also how long a stop may take.
graceful_timeout = 5
timeout = 120
accesslog = None
errorlog = "-"
loglevel = "warning"
control_socket_disable = True
