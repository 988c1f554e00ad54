"""Where this protocol's endpoints are."""

from __future__ import annotations

NOT_OFFERED = ("/instructable_embed", "/steering_concepts", "/translate", "/rerank")
"""What the vendor's clients may ask for and this service does not do."""


def with_version(path: str) -> tuple[str, str]:
    """A path without and with /v1: the vendor's clients are told either address."""
    return (path, f"/v1{path}")
