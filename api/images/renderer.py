"""Writes results as the standard has them, which is also how OpenAI's clients read them."""

from __future__ import annotations

import base64
from typing import Any

from api.settings import Settings
from workers.contract.errors import JobNotFound
from workers.contract.image_job import ImageResult, ResponseFormat
from workers.contract.job_record import JobRecord
from workers.contract.pictures import PictureStore
from workers.contract.public_url import public_url


class ImageRenderer:
    """Renders for one service.

    Args:
        settings: say under which address clients reach it.
        pictures: the files.
    """

    def __init__(self, settings: Settings, pictures: PictureStore) -> None:
        self._base_url = public_url(settings)
        self._pictures = pictures

    def render(self, record: JobRecord) -> dict[str, Any]:
        """The answer that a record's result is.

        Raises:
            JobNotFound: its pictures are not kept any more; the record goes in the same moment.
        """
        result = record.result
        assert isinstance(result, ImageResult), "an image job has an image result"
        return {
            "code": 0,
            "message": "success",
            "created": (record.finished_ms or record.created_ms) // 1000,
            "data": [self._picture(record.id, result, n) for n in range(result.n_pictures)],
        }

    def _picture(self, job_id: str, result: ImageResult, n: int) -> dict[str, Any]:
        is_inline = result.response_format is ResponseFormat.B64_JSON
        return {
            "b64_json": self._base64(job_id, n) if is_inline else "",
            "url": "" if is_inline else f"{self._base_url}/v1/images/{job_id}/{n}.png",
            "revised_prompt": result.prompt,
        }

    def _base64(self, job_id: str, n: int) -> str:
        file = self._pictures.get(job_id, n)
        if file is None:
            raise JobNotFound(job_id)
        return base64.b64encode(file).decode()
