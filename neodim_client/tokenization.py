"""The requests and answers of `/tokenize` and `/detokenize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from neodim_client.wire import Json, given_fields


@dataclass(frozen=True)
class TokenizationRequest:
    """Asks for the tokens of a text.

    Args:
        prompt: the text.
        tokens: whether to return them as the model's vocabulary writes them.
        token_ids: whether to return their numbers.
    """

    prompt: str
    tokens: bool = True
    token_ids: bool = True

    def to_json(self) -> dict[str, Any]:
        """The request's body, but for the model."""
        return given_fields(self)


@dataclass(frozen=True)
class TokenizationResponse:
    """The tokens of a text.

    Args:
        tokens: as the vocabulary writes them, None = not asked for.
        token_ids: their numbers, None = not asked for.
    """

    tokens: Sequence[str] | None = None
    token_ids: Sequence[int] | None = None

    @staticmethod
    def from_json(json: Json) -> TokenizationResponse:
        """The answer that JSON is."""
        return TokenizationResponse(json.get("tokens"), json.get("token_ids"))


@dataclass(frozen=True)
class DetokenizationRequest:
    """Asks for the text of tokens.

    Args:
        token_ids: their numbers.
    """

    token_ids: Sequence[int]

    def to_json(self) -> dict[str, Any]:
        """The request's body, but for the model."""
        return given_fields(self)


@dataclass(frozen=True)
class DetokenizationResponse:
    """The text of tokens.

    Args:
        result: the text.
    """

    result: str

    @staticmethod
    def from_json(json: Json) -> DetokenizationResponse:
        """The answer that JSON is.

        Raises:
            KeyError: a field is missing.
        """
        return DetokenizationResponse(json["result"])
