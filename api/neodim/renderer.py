"""Writes results and errors as the Neodim protocol has them."""

from __future__ import annotations

from typing import Any

from api.errors import Problem
from workers.contract.job_record import JobRecord
from workers.contract.text_result import DeviceMemory, SequenceResult, TextResult

_MOMENTS = ("start", "end", "min", "max")


def render(record: JobRecord) -> dict[str, Any]:
    """The answer that a record's result is."""
    assert isinstance(record.result, TextResult), "a Neodim job is for text"
    return render_result(record.result)


def render_result(result: TextResult) -> dict[str, Any]:
    """A result with every field of the protocol's answer."""
    prompt, penalty = result.prompt, result.penalty
    return {
        "original_input_tokens_count": prompt.n_original_input,
        "used_input_tokens_count": prompt.n_used_input,
        "preamble": prompt.preamble,
        "preamble_tokens_count": prompt.n_preamble,
        "used_prompt": prompt.used_prompt,
        "original_prompt_tokens_count": prompt.n_original_prompt,
        "used_prompt_tokens_count": prompt.n_used_prompt,
        "repetition_penalty_text_at_start": penalty.text_at_start,
        "used_repetition_penalty_tokens_count_at_start": penalty.n_tokens_at_start,
        "used_repetition_penalty_range_at_start": penalty.range_at_start,
        "used_repetition_penalty_tokens_count_at_end": penalty.n_tokens_at_end,
        "used_repetition_penalty_range_at_end": penalty.range_at_end,
        "generated_tokens_count": result.n_generated,
        "output_tokens_count": prompt.n_used_input + result.n_generated,
        "sequences": [_sequence(each) for each in result.sequences],
        "gpus": [_gpu(each) for each in result.devices],
    }


def render_error(problem: Problem) -> dict[str, Any]:
    """An error: its text."""
    return {"error": problem.message}


def _sequence(sequence: SequenceResult) -> dict[str, Any]:
    return {
        "generated_text": sequence.text,
        "output_text": sequence.output_text,
        "stop_string": sequence.stop_string,
        "stop_string_match": sequence.stop_match,
        "trimmed_tail": sequence.tail,
        "repetition_penalty_text_at_end": sequence.penalty_text_at_end,
    }


def _gpu(device: DeviceMemory) -> dict[str, Any]:
    figures: dict[str, Any] = {"name": device.name, "memory_total": device.total}
    for n, moment in enumerate(_MOMENTS):
        figures[f"memory_reserved_{moment}"] = device.reserved[n]
        figures[f"memory_allocated_{moment}"] = device.allocated[n]
        figures[f"memory_free_{moment}"] = device.free[n]
    return figures
