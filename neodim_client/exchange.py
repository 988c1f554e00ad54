"""What both drivers need to know of httpx: requests, answers and failures."""

from __future__ import annotations

import math
from typing import Any

import httpx

from neodim_client.answers import Answer
from neodim_client.calls import Call
from neodim_client.errors import ConnectionFailed, TimedOut
from neodim_client.steps import Failure
from neodim_client.version import VERSION

CONNECT_TIMEOUT_S = 10.0

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Server:
    """A server as its client knows it.

    Args:
        url: its address, with http or https, and the path in front of every endpoint, if any.
        api_key: sent with every request, None = none.
        timeout_s: seconds without a byte after which a call is given up, None = never.

    Raises:
        ValueError: naming the argument.
    """

    def __init__(self, url: str, api_key: str | None, timeout_s: float | None) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"base_url: must begin with http:// or https://, not {url!r}")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise ValueError("api_key: may have visible ASCII characters only")
        if timeout_s is not None and not 0 < timeout_s < math.inf:
            raise ValueError(f"timeout_s: must be above 0, or None for no limit, not {timeout_s}")
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._headers = {"User-Agent": f"neodim-client/{VERSION}", "Accept": "*/*"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def request(self, http: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
        """A call as httpx sends it."""
        headers = {**self._headers, **call.headers}
        if call.content is not None:
            headers["Content-Type"] = "application/json"
        silence_s = self._timeout_s if call.silence_s is None else call.silence_s
        return http.build_request(
            call.method,
            self._url + call.path,
            content=call.content,
            headers=headers,
            # However long others keep all connections: their own calls have limits.
            timeout=httpx.Timeout(silence_s, connect=CONNECT_TIMEOUT_S, pool=None),
        )


def answer_of(response: httpx.Response, content: bytes = b"") -> Answer:
    """An answer without httpx."""
    return Answer(response.status_code, dict(response.headers), content)


def failure_of(error: httpx.RequestError) -> Failure:
    """A failure without httpx."""
    url = error.request.url
    server = f"{url.scheme}://{url.netloc.decode()}"
    message = str(error) or type(error).__name__
    was_sent = not isinstance(error, NEVER_SENT)
    if was_sent and isinstance(error, httpx.TimeoutException):
        return TimedOut(f"{server} is silent: {message}")
    what = "broke the connection" if was_sent else "cannot be reached"
    return ConnectionFailed(f"{server} {what}: {message}", was_sent=was_sent)
