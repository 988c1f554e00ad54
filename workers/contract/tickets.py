"""Tickets: Celery messages that wake a worker, which then claims the best waiting job itself.

A ticket carries nothing, so that a lost, late or doubled one does no harm.
"""

from __future__ import annotations

import re
from functools import cache

import redis
from celery import Celery
from kombu.exceptions import OperationalError

from workers.contract.errors import QueueUnavailable
from workers.contract.redis_client import Client

RUN_NEXT_JOB = "neodim.run_next_job"
"""Name of the one task."""

BROKER_CONNECTIONS = 4
"""Of one process; each is two to Redis. Who sends a ticket waits until one is free."""

VISIBILITY_TIMEOUT_S = 6 * 3600
"""Tickets are acknowledged when received, so this only has to be long."""


def queue_name(model: str) -> str:
    """The Celery queue of a model: kombu cannot carry every character, ':' least of all."""
    return "neodim." + re.sub(r"[^A-Za-z0-9_.-]", "_", model)


def broker_url(redis_url: str) -> str:
    """A Redis address as Celery writes it."""
    return re.sub(r"^unix://", "redis+socket://", redis_url)


@cache
def make_celery(redis_url: str) -> Celery:
    """The Celery application, the same for those who send tickets and those who take them."""
    app = Celery("neodim", broker=broker_url(redis_url), set_as_current=False)
    app.conf.update(
        broker_transport_options={
            "visibility_timeout": VISIBILITY_TIMEOUT_S,
            "global_keyprefix": "neodim:celery:",
            "socket_keepalive": True,
            "health_check_interval": 25,
            "socket_timeout": 30,
            "retry_on_timeout": True,
        },
        broker_pool_limit=BROKER_CONNECTIONS,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        task_ignore_result=True,
        task_acks_late=False,
        # Concerns late acknowledgements only; unset, Celery warns at every loss of connection.
        worker_cancel_long_running_tasks_on_connection_loss=True,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        task_serializer="json",
        accept_content=["json"],
    )
    return app


def send_ticket(app: Celery, model: str) -> None:
    """Wake a worker of the model.

    Raises:
        QueueUnavailable: the broker does not answer. The job it is for stays in line; the
            sweeper sends another ticket.
    """
    try:
        app.send_task(RUN_NEXT_JOB, args=[], queue=queue_name(model), retry=False)
    except (OperationalError, redis.RedisError, OSError) as error:
        raise QueueUnavailable("the message broker does not answer") from error


def top_up(app: Celery, client: Client, model: str, n_waiting: int, most: int) -> None:
    """Send the tickets that are missing, because some were lost, for jobs that wait.

    Args:
        app: sends them.
        client: connection to the broker's Redis.
        model: whose queue it is.
        n_waiting: jobs in line.
        most: tickets that make sense at all, the slots of a worker.
    """
    n_tickets = client.llen(f"neodim:celery:{queue_name(model)}")
    for _ in range(min(n_waiting, most) - n_tickets):
        send_ticket(app, model)
