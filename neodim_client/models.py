"""The models that a server says it has (`/models_available`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neodim_client.wire import Json


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """One model.

    Args:
        name: by which requests name it.
        description: what it is, in words.
        max_context_size: tokens of prompt and completion together.
        image_support: whether prompts may have images.
        maximum_completion_tokens: tokens of one completion, None = no limit of its own.
        is_aligned: whether it was trained to follow instructions.
        all_fields: everything that the server says of it.
    """

    name: str
    description: str
    max_context_size: int
    image_support: bool
    maximum_completion_tokens: int | None
    is_aligned: bool
    all_fields: dict[str, Any]

    @staticmethod
    def from_json(json: Json) -> ModelInfo:
        """The model that JSON describes.

        Raises:
            KeyError: its name or its context is missing.
        """
        return ModelInfo(
            name=json["name"],
            description=json.get("description") or "",
            max_context_size=json["max_context_size"],
            image_support=bool(json.get("image_support")),
            maximum_completion_tokens=json.get("maximum_completion_tokens"),
            is_aligned=bool(json.get("aligned")),
            all_fields=dict(json),
        )
