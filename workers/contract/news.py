"""Which jobs have news, told to every process that listens, over one connection each.

News may be missed, while a connection is lost for instance: it tells when to look, never what is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from workers.contract import keys
from workers.contract.redis_client import Client, text

POLL_S = 1.0
"""How long one look at the connection lasts, at most."""

_ENDED = "ended "


@dataclass(frozen=True, slots=True)
class News:
    """That a job's stream has grown.

    Args:
        job_id: which job.
        is_end: whether by its last event.
    """

    job_id: str
    is_end: bool


def listen(client: Client) -> Iterator[News | None]:
    """What happens from now on; never ends.

    Args:
        client: gives the connection.

    Yields:
        News; None first, once all news will be heard, and whenever there was none for `POLL_S`.

    Raises:
        redis.RedisError: the connection is lost.
    """
    with client.pubsub() as subscription:
        subscription.subscribe(keys.NEWS)
        while True:
            message = subscription.get_message(timeout=POLL_S)
            if message is not None and message["type"] == "message":
                said = text(message["data"])
                yield News(said.removeprefix(_ENDED), said.startswith(_ENDED))
            else:
                yield None
