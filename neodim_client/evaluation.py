"""The request and the answer of `/evaluate`: how likely an expected completion is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neodim_client.prompt import Prompt, prompt_json
from neodim_client.wire import Json, from_fields, given_fields


@dataclass(frozen=True)
class EvaluationRequest:
    """Asks how likely a text is behind a prompt.

    Args:
        prompt: what comes first.
        completion_expected: the text.
        contextual_control_threshold, control_log_additive: as in a completion request.
    """

    prompt: Prompt
    completion_expected: str
    contextual_control_threshold: float | None = None
    control_log_additive: bool | None = True

    def to_json(self) -> dict[str, Any]:
        """The request's body, but for the model; what is None is left out."""
        return {**given_fields(self), "prompt": prompt_json(self.prompt)}


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """How likely the expected text is.

    Args:
        log_probability: the sum over its tokens.
        log_perplexity: the negative of that, as a whole, per token and per character.
        correct_greedy: whether the likeliest tokens are the expected ones.
        token_count, character_count: of the expected text.
        completion: the likeliest token at each of its places, as text.
    """

    log_probability: float
    log_perplexity: float
    log_perplexity_per_token: float
    log_perplexity_per_character: float
    correct_greedy: bool
    token_count: int
    character_count: int
    completion: str


@dataclass(frozen=True)
class EvaluationResponse:
    """The answer to an evaluation request.

    Args:
        model_version: which model it was.
        result: how likely the expected text is.
        num_tokens_prompt_total: tokens of the prompt and the expected text.
    """

    model_version: str
    result: EvaluationResult
    num_tokens_prompt_total: int

    @staticmethod
    def from_json(json: Json) -> EvaluationResponse:
        """The answer that JSON is.

        Raises:
            KeyError: a field is missing.
        """
        return from_fields(
            EvaluationResponse, json, result=from_fields(EvaluationResult, json["result"])
        )
