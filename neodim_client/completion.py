"""The answers of `/complete`, whole and as the items of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neodim_client.prompt import Prompt
from neodim_client.wire import Json, given_fields

LogProbs = Sequence[Mapping[str, float | None]]
"""For each token, log-probabilities by text, the likeliest first; {} for a prompt's first token."""


@dataclass(frozen=True)
class CompletionResult:
    """One completion.

    Args:
        log_probs: None = not asked for.
        completion: the text.
        completion_tokens: its tokens, None = not asked for.
        finish_reason: `maximum_tokens`, `end_of_text` or `stop_sequence_reached`.
        raw_completion: the text with special tokens shown.
    """

    log_probs: LogProbs | None = None
    completion: str | None = None
    completion_tokens: Sequence[str] | None = None
    finish_reason: str | None = None
    raw_completion: str | None = None

    @staticmethod
    def from_json(json: Json) -> CompletionResult:
        """The completion that an answer carries."""
        return CompletionResult(
            log_probs=json.get("log_probs"),
            completion=json.get("completion"),
            completion_tokens=json.get("completion_tokens"),
            finish_reason=json.get("finish_reason"),
            raw_completion=json.get("raw_completion"),
        )

    def to_json(self) -> dict[str, Any]:
        """The completion as an answer carries it."""
        return given_fields(self)


@dataclass(frozen=True)
class CompletionResponse:
    """The answer to a completion request.

    Args:
        model_version: which model it was.
        completions: as many as were asked for.
        num_tokens_prompt_total: the prompt's tokens, once for each completion that was generated.
        num_tokens_generated: tokens of all completions that were generated.
        optimized_prompt: the prompt as it was read, if that is not the one of the request.
    """

    model_version: str
    completions: Sequence[CompletionResult]
    num_tokens_prompt_total: int
    num_tokens_generated: int
    optimized_prompt: Prompt | None = None

    @staticmethod
    def from_json(json: Json) -> CompletionResponse:
        """The answer that JSON is.

        Raises:
            KeyError: a field is missing.
        """
        return CompletionResponse(
            model_version=json["model_version"],
            completions=tuple(map(CompletionResult.from_json, json["completions"])),
            num_tokens_prompt_total=json["num_tokens_prompt_total"],
            num_tokens_generated=json["num_tokens_generated"],
            optimized_prompt=_optimized_prompt(json),
        )

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON; what is None is left out."""
        json = {**given_fields(self), "completions": [each.to_json() for each in self.completions]}
        if self.optimized_prompt is not None:
            json["optimized_prompt"] = self.optimized_prompt.to_json()
        return json


@dataclass(frozen=True)
class StreamChunk:
    """What one completion gained; the chunks of a completion add up to it.

    Args:
        index: which completion.
        completion, log_probs, completion_tokens, raw_completion: as in `CompletionResult`, of
            this chunk's tokens alone.
    """

    index: int
    completion: str
    log_probs: LogProbs | None = None
    completion_tokens: Sequence[str] | None = None
    raw_completion: str | None = None


@dataclass(frozen=True)
class StreamSummary:
    """One completion's end.

    Args:
        index: which completion.
        model_version, finish_reason: as in a plain answer.
    """

    index: int
    model_version: str
    finish_reason: str


@dataclass(frozen=True)
class CompletionSummary:
    """A stream's end.

    Args:
        num_tokens_prompt_total, num_tokens_generated, optimized_prompt: as in a plain answer.
    """

    num_tokens_prompt_total: int
    num_tokens_generated: int
    optimized_prompt: Prompt | None = None


StreamItem = StreamChunk | StreamSummary | CompletionSummary


def stream_item(json: Json) -> StreamItem:
    """One item of a streamed completion.

    Raises:
        KeyError: a field is missing.
        ValueError: it is of no known type.
    """
    kind = json["type"]
    if kind == "stream_chunk":
        return StreamChunk(
            index=json["index"],
            completion=json["completion"],
            log_probs=json.get("log_probs"),
            completion_tokens=json.get("completion_tokens"),
            raw_completion=json.get("raw_completion"),
        )
    if kind == "stream_summary":
        return StreamSummary(json["index"], json["model_version"], json["finish_reason"])
    if kind == "completion_summary":
        return CompletionSummary(
            num_tokens_prompt_total=json["num_tokens_prompt_total"],
            num_tokens_generated=json["num_tokens_generated"],
            optimized_prompt=_optimized_prompt(json),
        )
    raise ValueError(f"type: {kind!r} is no item of a streamed completion")


def _optimized_prompt(json: Json) -> Prompt | None:
    prompt = json.get("optimized_prompt")
    return Prompt.from_json(prompt) if prompt else None
