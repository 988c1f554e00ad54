"""Waits until the service is ready, and says so in one line with something to try."""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import dataclass

from workers.contract.public_url import address_to_try
from workers.contract.settings import VERSION, Settings

POLL_S = 0.3
PATIENCE_S = 30
"""Between two lines that say what is still being waited for."""

REQUEST = (
    '{"prompt": "I walk across the dead train yard, remembering who we are.", '
    '"generated_tokens_count": 32, "max_total_tokens": 128}'
)


@dataclass(frozen=True)
class Announcement:
    """What to ask, and what to say when the answer is yes.

    Args:
        host: part of the URL, in brackets when it is an IPv6 address.
        port: TCP port.
        model_name: what clients call the model, or the models.
        api_key: a key that the service wants, None when it wants none.
        instance: which start of a service has to answer.
    """

    host: str
    port: int
    model_name: str
    api_key: str | None
    instance: str

    @classmethod
    def of(cls, settings: Settings) -> Announcement:
        """What there is to say of a service with these settings."""
        key = settings.api_key[0] if settings.api_key else None
        host = address_to_try(settings.listen_address)
        names = " and ".join(settings.model_names)
        return cls(host, settings.listen_port, names, key, settings.instance)

    @property
    def url(self) -> str:
        """Where the service answers."""
        return f"http://{self.host}:{self.port}"

    def line(self) -> str:
        """The one line for the user; a key is not printed."""
        key = "" if self.api_key is None else " -H 'Authorization: Bearer YOUR-KEY'"
        return (
            f"Neodim {VERSION} serves {self.model_name} on {self.url} - "
            f"try: curl -s{key} --data '{REQUEST}' {self.url}/generate"
        )

    def is_ready(self) -> bool:
        """Whether the service, and no other on its port, says that it can take requests."""
        headers = {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}
        connection = http.client.HTTPConnection(self.host.strip("[]"), self.port, timeout=5)
        try:
            connection.request("GET", "/health/ready", headers=headers)
            reply = connection.getresponse()
            is_ours = json.loads(reply.read()).get("instance") == self.instance
            return reply.status == 200 and is_ours
        except (OSError, ValueError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def announce(announcement: Announcement, stopped: threading.Event) -> bool:
    """Wait for the service, print the line, and return whether it became ready.

    Args:
        announcement: what to ask and to say.
        stopped: set when nobody waits any more.
    """
    started, said = time.monotonic(), 0
    while not stopped.is_set():
        if announcement.is_ready():
            print(announcement.line(), flush=True)
            return True
        waited_s = int(time.monotonic() - started)
        if waited_s // PATIENCE_S > said:
            said = waited_s // PATIENCE_S
            print(f"Still starting after {waited_s} s", flush=True)
        stopped.wait(POLL_S)
    return False
