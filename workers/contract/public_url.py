"""The URL by which others reach this service."""

from __future__ import annotations

from workers.contract.settings import Settings


def public_url(settings: Settings) -> str:
    """The start of every URL of this service, without a slash at its end.

    A service that listens on every address is known to its own host alone, unless
    `--public-url` says more.
    """
    if settings.public_url is not None:
        return settings.public_url.rstrip("/")
    return f"http://{address_to_try(settings.listen_address)}:{settings.listen_port}"


def address_to_try(address: str) -> str:
    """The host part of a URL by which this host reaches what listens on an address."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
    return f"[{reachable}]" if ":" in reachable else reachable
