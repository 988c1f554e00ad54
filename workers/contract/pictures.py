"""The picture files of image jobs: each in a Redis key of its own, gone when its job is."""

from __future__ import annotations

from collections.abc import Sequence

from workers.contract import keys
from workers.contract.redis_client import Client


class PictureStore:
    """The pictures of one service.

    Args:
        client: connection to the Redis that holds them.
        ttl_s: seconds for which they are kept, as long as an ended job.
    """

    def __init__(self, client: Client, ttl_s: int) -> None:
        self._redis = client
        self._ttl_s = ttl_s

    def put(self, job_id: str, files: Sequence[bytes]) -> None:
        """Keep the pictures of a job, numbered from 0; right before the job is ended.

        Another attempt that draws the same ones anew writes the same again: a seed's pictures
        do not differ.
        """
        with self._redis.pipeline(transaction=False) as pipeline:
            for n, file in enumerate(files):
                pipeline.set(keys.picture(job_id, n), file, ex=self._ttl_s)
            pipeline.execute()

    def get(self, job_id: str, n: int) -> bytes | None:
        """One picture of a job; None = it has none of that number, or not any more."""
        file: bytes | None = self._redis.get(keys.picture(job_id, n))
        return file
