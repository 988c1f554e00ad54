"""The API's settings: those of the service, and where its Redis is."""

from __future__ import annotations

from workers.contract.settings import Settings, read_settings

__all__ = ["Settings", "read_settings", "redis_address"]


def redis_address(settings: Settings) -> str:
    """Where Redis is.

    Raises:
        ValueError: the launcher did not say it.
    """
    if not settings.redis_url:
        raise ValueError("redis_url is missing from the settings: start the service with start.sh")
    return settings.redis_url
