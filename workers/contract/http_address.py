"""Addresses of other HTTP servers: checked once, then connected to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit

ALLOWED = "an http:// or https:// URL with a host"
_VISIBLE = re.compile(r"[!-~]+")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """Where a server answers.

    Args:
        scheme: "http" or "https".
        host: name or IP address, without brackets.
        path: begins with "/" or is empty; never ends with "/".
        query: what follows "?", "" = nothing.
        key: what stands before "@" in the URL, "" = nothing; a secret, and not part of `str()`.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""
    key: str = ""

    def __str__(self) -> str:
        """The URL without its key."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.target}"

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def connect(self, timeout_s: float) -> HTTPConnection:
        """A connection that opens with its first request.

        Args:
            timeout_s: of opening it, and of each wait for bytes after that.
        """
        kind = HTTPSConnection if self.scheme == "https" else HTTPConnection
        return kind(self.host, self.port, timeout=timeout_s)


def parse_http_url(text: str, default_port: int | None = None) -> HttpAddress:
    """The address that a URL names.

    Args:
        text: the URL.
        default_port: where it names no port, None = that of its scheme.

    Raises:
        ValueError: it is no URL of HTTP; the message says what is allowed.
    """
    try:
        parts = urlsplit(text if _VISIBLE.fullmatch(text) else "")
        scheme, host, port = parts.scheme, parts.hostname, parts.port
        # Connecting would fail with a UnicodeError where a name has an empty or a long label.
        (host or "").encode("idna")
    except ValueError:
        raise ValueError(f"must be {ALLOWED}") from None
    if scheme not in _PORTS or not host or port == 0 or parts.password is not None:
        raise ValueError(f"must be {ALLOWED}")
    return HttpAddress(
        scheme=scheme,
        host=host,
        port=port or default_port or _PORTS[scheme],
        path=parts.path.rstrip("/"),
        query=parts.query,
        key=parts.username or "",
    )
