"""The models' tokenizers, as `tokenizer.json` has them: workers keep them in Redis for the API.

The key lives on for a while after a model's last worker, which says with every heartbeat that it
is to stay; so texts can be tokenised while a worker starts again.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass

from workers.contract import keys
from workers.contract.redis_client import Client, text

TOKENIZER_TTL_S = 24 * 3600
_DIGEST, _PACKED = "digest", "packed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFile:
    """A `tokenizer.json`, which can have tens of megabytes.

    Args:
        digest: tells it from others.
        packed: it, compressed.
    """

    digest: str
    packed: bytes

    @staticmethod
    def of(json_text: str) -> TokenizerFile:
        """The file that has this text."""
        body = json_text.encode()
        return TokenizerFile(digest=hashlib.sha256(body).hexdigest(), packed=zlib.compress(body))

    def unpack(self) -> str:
        """Its text."""
        return zlib.decompress(self.packed).decode()


class TokenizerStore:
    """The tokenizers of one service.

    Args:
        client: connection to the Redis that holds them.
    """

    def __init__(self, client: Client) -> None:
        self._redis = client

    def keep(self, model: str, file: TokenizerFile) -> None:
        """Say which tokenizer a model has; it is written only where Redis has another, or none."""
        key = keys.tokenizer(model)
        with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.hget(key, _DIGEST)
            pipeline.expire(key, TOKENIZER_TTL_S)
            known, _ = pipeline.execute()
        if known is None or text(known) != file.digest:
            with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.hset(key, mapping={_DIGEST: file.digest, _PACKED: file.packed})
                pipeline.expire(key, TOKENIZER_TTL_S)
                pipeline.execute()

    def digest(self, model: str) -> str | None:
        """What tells a model's tokenizer from others; None = it is not known, or not any more."""
        found = self._redis.hget(keys.tokenizer(model), _DIGEST)
        return None if found is None else text(found)

    def get(self, model: str) -> TokenizerFile | None:
        """A model's tokenizer; None = it is not known, or not any more."""
        digest, packed = self._redis.hmget(keys.tokenizer(model), _DIGEST, _PACKED)
        if digest is None or packed is None:
            return None
        return TokenizerFile(digest=text(digest), packed=packed)
