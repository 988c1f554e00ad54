"""Writes completions as the vendor's clients read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.aleph_alpha.tokens import kept_tokens, tell
from api.aleph_alpha.written_prompt import write_prompt
from workers.contract.job_record import JobRecord
from workers.contract.text_result import FinishReason, SequenceResult, TextResult

_FINISHED: Mapping[FinishReason, str] = {
    FinishReason.LENGTH: "maximum_tokens",
    FinishReason.STOP: "stop_sequence_reached",
    FinishReason.END_OF_TEXT: "end_of_text",
    FinishReason.CANCELLED: "cancelled",
}


def render_completion(record: JobRecord) -> dict[str, Any]:
    """The answer to a completion request."""
    result = result_of(record)
    completions = [_completion(n, each, result) for n, each in enumerate(result.sequences)]
    return {"model_version": record.model, "completions": completions, **totals(result)}


def result_of(record: JobRecord) -> TextResult:
    """A record's result, where it has one."""
    assert isinstance(record.result, TextResult), "only what has a result is rendered"
    return record.result


def totals(result: TextResult) -> dict[str, Any]:
    """What is told once of all completions: tokens, those of candidates not kept included."""
    prompt = result.prompt
    told: dict[str, Any] = {
        "num_tokens_prompt_total": prompt.n_used_input * result.n_candidates,
        "num_tokens_generated": result.n_made,
    }
    if prompt.items is not None:
        told["optimized_prompt"] = write_prompt(prompt.items)
    return told


def finish_reason(sequence: SequenceResult) -> str:
    """Why a completion ended."""
    return _FINISHED[sequence.finish_reason]


def _completion(index: int, sequence: SequenceResult, result: TextResult) -> dict[str, Any]:
    tokens = [*(result.prompt.echo or ()), *kept_tokens(sequence)]
    told = tell(tokens, result.answer_fields)
    return {"index": index, **told, "finish_reason": finish_reason(sequence)}
