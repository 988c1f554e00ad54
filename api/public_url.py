"""The address under which clients reach this service: the only place that makes links."""

from __future__ import annotations

from api.settings import Settings

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that mean all of this host's, and one of those that can be connected to."""


def public_url(settings: Settings) -> str:
    """Scheme, host and port, without a slash at the end."""
    named: str | None = getattr(settings, "public_url", None)
    if named:
        return named.rstrip("/")
    host = _ANY.get(settings.listen_address, settings.listen_address)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.listen_port}"
