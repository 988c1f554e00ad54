"""Writes text results as the standard has them: its own fields, and those of OpenAI's clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.standard.log_probs import chat_log_probs, completion_log_probs, scores_of_text
from workers.contract.job_record import JobRecord
from workers.contract.settings import VERSION
from workers.contract.text_result import FinishReason, SequenceResult, TextResult, TokenScore

FINGERPRINT = f"neodim-{VERSION}"
"""What made an answer, apart from its model."""

_FINISHED = {
    FinishReason.LENGTH: "length",
    FinishReason.STOP: "stop",
    FinishReason.END_OF_TEXT: "stop",
    FinishReason.CANCELLED: "cancelled",
}


def render_chat(record: JobRecord) -> dict[str, Any]:
    """The answer to a chat request."""
    result = _result(record)
    choices = [_chat_choice(index, each) for index, each in enumerate(result.sequences)]
    return _answer(chat_head(record), choices, usage_of([result]))


def render_completion(record: JobRecord) -> dict[str, Any]:
    """The answer to a completion request of one prompt."""
    return render_completions([record])


def render_completions(records: Sequence[JobRecord]) -> dict[str, Any]:
    """The answer to a completion request: choices of all prompts in their order."""
    results = [_result(record) for record in records]
    texts = [(result, each) for result in results for each in result.sequences]
    choices = [_completion_choice(n, result, each) for n, (result, each) in enumerate(texts)]
    return _answer(completion_head(records[0]), choices, usage_of(results))


def chat_head(record: JobRecord, kind: str = "chat.completion") -> dict[str, Any]:
    """What every part of a chat's answer begins with."""
    return _head(record, f"chatcmpl-{record.id}", kind)


def completion_head(record: JobRecord) -> dict[str, Any]:
    """What every part of a completion's answer begins with."""
    return _head(record, f"cmpl-{record.id}", "text_completion")


def usage_of(results: Sequence[TextResult]) -> dict[str, int]:
    """Tokens read and generated, those of candidates that were not kept included."""
    n_prompt = sum(each.prompt.n_used_input for each in results)
    n_made = sum(each.n_made for each in results)
    return {
        "prompt_tokens": n_prompt,
        "completion_tokens": n_made,
        "total_tokens": n_prompt + n_made,
    }


def ending(sequence: SequenceResult) -> dict[str, Any]:
    """Why a text ended: OpenAI's reason, and the stop string or the id of the last token."""
    stop_reason: str | int | None = sequence.stop_string or None
    if sequence.finish_reason is FinishReason.END_OF_TEXT:
        stop_reason = sequence.tokens[-1]
    return {"finish_reason": _FINISHED[sequence.finish_reason], "stop_reason": stop_reason}


def _result(record: JobRecord) -> TextResult:
    assert isinstance(record.result, TextResult), "only what has a result is rendered"
    return record.result


def _head(record: JobRecord, answer_id: str, kind: str) -> dict[str, Any]:
    return {
        "id": answer_id,
        "object": kind,
        "created": record.created_ms // 1000,
        "model": record.model,
        "system_fingerprint": FINGERPRINT,
    }


def _answer(
    head: dict[str, Any], choices: list[dict[str, Any]], usage: dict[str, int]
) -> dict[str, Any]:
    return {"code": 0, "message": "success", **head, "choices": choices, "usage": usage}


def _chat_choice(index: int, sequence: SequenceResult) -> dict[str, Any]:
    return {
        "index": index,
        "message": {"role": "assistant", "content": sequence.text},
        "logprobs": chat_log_probs(_told(sequence)),
        **ending(sequence),
    }


def _completion_choice(index: int, result: TextResult, sequence: SequenceResult) -> dict[str, Any]:
    echo = result.prompt.echo or ()
    told = _told(sequence)
    return {
        "index": index,
        "text": "".join(each.text for each in echo) + sequence.text,
        "logprobs": completion_log_probs(None if told is None else [*echo, *told]),
        **ending(sequence),
    }


def _told(sequence: SequenceResult) -> list[TokenScore] | None:
    return None if sequence.scores is None else scores_of_text(sequence.scores, sequence.text)
