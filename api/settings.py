"""The API's settings: those of the service, and the keys that clients must send."""

from __future__ import annotations

from pathlib import Path

from workers.contract.settings import Settings, read_settings

__all__ = ["Settings", "load_api_keys", "read_settings", "redis_address"]


def load_api_keys(settings: Settings) -> tuple[str, ...]:
    """Every key that clients may send, from the flags and the file; empty = none is needed.

    Raises:
        OSError: the file cannot be read.
        ValueError: there is a file, but no key in it: the service must not be open by mistake.
    """
    keys = list(settings.api_key)
    if settings.api_keys_file is not None:
        lines = Path(settings.api_keys_file).read_text(encoding="utf-8").splitlines()
        found = [line.strip() for line in lines]
        found = [line for line in found if line and not line.startswith("#")]
        if not found:
            raise ValueError(f"--api-keys-file {settings.api_keys_file!r}: holds no key")
        keys += found
    return tuple(dict.fromkeys(keys))


def redis_address(settings: Settings) -> str:
    """Where Redis is.

    Raises:
        ValueError: the launcher did not say it.
    """
    if not settings.redis_url:
        raise ValueError("redis_url is missing from the settings: start the service with start.sh")
    return settings.redis_url
