"""Who may ask: API keys as bearer tokens (RFC 6750), and whose job is whose."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from flask import Flask, g, request

from api.rejections import Unauthorized

OPEN_PATHS = frozenset({"/health/live"})
"""What is answered without a key."""

FINGERPRINT_LENGTH = 16


class KeyRing:
    """The keys of one service.

    Args:
        keys: the keys; none = nobody has to send one.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def owner_of(self, authorization: str | None) -> str:
        """The fingerprint of the key in an Authorization header, "" where no key is needed.

        Every key is compared, and in constant time, so that the time says nothing about them.

        Raises:
            Unauthorized: there is no key in it, or not one of ours.
        """
        if not self._digests:
            return ""
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("an API key is needed: send the header Authorization: Bearer <key>")
        # WSGI gives a header's bytes as Latin-1 characters.
        digest = hashlib.sha256(key.strip().encode("latin-1", "replace")).digest()
        matches = [hmac.compare_digest(digest, each) for each in self._digests]
        if not any(matches):
            raise Unauthorized("the API key is not valid")
        return digest.hex()[:FINGERPRINT_LENGTH]


def install(app: Flask, keys: KeyRing, keys_of_rooms: Mapping[str, KeyRing]) -> None:
    """Let nobody in without a key; preflight requests, which carry none, excepted.

    Args:
        app: the application.
        keys: for every path but those of the next.
        keys_of_rooms: for paths that start in some way; no other key counts there.
    """

    def authenticate() -> None:
        if request.method != "OPTIONS" and request.path not in OPEN_PATHS:
            own = (ring for start, ring in keys_of_rooms.items() if request.path.startswith(start))
            g.owner = next(own, keys).owner_of(request.headers.get("Authorization"))

    app.before_request(authenticate)


def owner() -> str:
    """The fingerprint of the key that this request came with, "" = none is needed."""
    fingerprint: str = g.owner
    return fingerprint
