"""The request and the answer of `/embed`: what the model makes of a prompt, as vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neodim_client.prompt import Prompt, prompt_json
from neodim_client.wire import Json, given_fields


@dataclass(frozen=True)
class EmbeddingRequest:
    """Asks for embeddings of a prompt.

    Args:
        prompt: the prompt.
        layers: behind which layers; 0 is the input, negative ones count from the last.
        pooling: how tokens become one vector: `mean`, `weighted_mean`, `max`, `last_token`,
            `abs_max`.
        type: kind of embedding, None = the model's own.
        tokens: whether the prompt's tokens are returned too.
        normalize: whether vectors have length 1.
        contextual_control_threshold, control_log_additive: as in a completion request.
    """

    prompt: Prompt
    layers: Sequence[int]
    pooling: Sequence[str]
    type: str | None = None
    tokens: bool = False
    normalize: bool = False
    contextual_control_threshold: float | None = None
    control_log_additive: bool | None = True

    def to_json(self) -> dict[str, Any]:
        """The request's body, but for the model; what is None is left out."""
        return {**given_fields(self), "prompt": prompt_json(self.prompt)}


@dataclass(frozen=True)
class EmbeddingResponse:
    """The answer to an embedding request.

    Args:
        model_version: which model it was.
        embeddings: vectors by layer, such as `layer_0`, and pooling.
        tokens: the prompt's tokens, None = not asked for.
        num_tokens_prompt_total: how many those are.
    """

    model_version: str
    embeddings: Mapping[tuple[str, str], Sequence[float]]
    tokens: Sequence[str] | None
    num_tokens_prompt_total: int

    @staticmethod
    def from_json(json: Json) -> EmbeddingResponse:
        """The answer that JSON is.

        Raises:
            KeyError: a field is missing.
        """
        return EmbeddingResponse(
            model_version=json["model_version"],
            embeddings={
                (layer, pooling): vector
                for layer, vectors in json["embeddings"].items()
                for pooling, vector in vectors.items()
            },
            tokens=json.get("tokens"),
            num_tokens_prompt_total=json["num_tokens_prompt_total"],
        )
