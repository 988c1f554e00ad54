from __future__ import annotations

from api.neodim.renderer import render_result
from api.neodim.schema import GeneratedSchema, GeneratedSequenceSchema, GpuSchema
from workers.contract.text_result import (
    DeviceMemory,
    FinishReason,
    PenaltyReport,
    PromptReport,
    SequenceResult,
    TextResult,
)

RESULT = TextResult(
    prompt=PromptReport(
        preamble="pre",
        used_prompt="used",
        n_preamble=1,
        n_original_prompt=7,
        n_original_input=8,
        n_used_prompt=5,
        n_used_input=6,
    ),
    penalty=PenaltyReport(
        text_at_start="start",
        n_tokens_at_start=2,
        range_at_start=64,
        n_tokens_at_end=3,
        range_at_end=65,
    ),
    sequences=(
        SequenceResult(
            text="made",
            stop_string="s+",
            stop_match="ss",
            tail="tail",
            output_text="preusedmadesstail",
            penalty_text_at_end="end",
            tokens=(1, 2, 3),
            finish_reason=FinishReason.STOP,
        ),
    ),
    n_generated=4,
    devices=(
        DeviceMemory(
            name="card",
            total=100,
            reserved=(1, 2, 3, 4),
            allocated=(5, 6, 7, 8),
            free=(9, 10, 11, 12),
        ),
    ),
)


def test_a_result_has_every_field_of_the_answer():
    body = render_result(RESULT)

    assert body == {
        "original_input_tokens_count": 8,
        "used_input_tokens_count": 6,
        "preamble": "pre",
        "preamble_tokens_count": 1,
        "used_prompt": "used",
        "original_prompt_tokens_count": 7,
        "used_prompt_tokens_count": 5,
        "repetition_penalty_text_at_start": "start",
        "used_repetition_penalty_tokens_count_at_start": 2,
        "used_repetition_penalty_range_at_start": 64,
        "used_repetition_penalty_tokens_count_at_end": 3,
        "used_repetition_penalty_range_at_end": 65,
        "generated_tokens_count": 4,
        "output_tokens_count": 10,
        "sequences": [
            {
                "generated_text": "made",
                "output_text": "preusedmadesstail",
                "stop_string": "s+",
                "stop_string_match": "ss",
                "trimmed_tail": "tail",
                "repetition_penalty_text_at_end": "end",
            }
        ],
        "gpus": [
            {
                "name": "card",
                "memory_total": 100,
                "memory_reserved_start": 1,
                "memory_allocated_start": 5,
                "memory_free_start": 9,
                "memory_reserved_end": 2,
                "memory_allocated_end": 6,
                "memory_free_end": 10,
                "memory_reserved_min": 3,
                "memory_allocated_min": 7,
                "memory_free_min": 11,
                "memory_reserved_max": 4,
                "memory_allocated_max": 8,
                "memory_free_max": 12,
            }
        ],
    }


def test_the_documentation_has_the_fields_of_the_answer():
    body = render_result(RESULT)

    assert set(body) == set(GeneratedSchema().fields)
    assert set(body["sequences"][0]) == set(GeneratedSequenceSchema().fields)
    assert set(body["gpus"][0]) == set(GpuSchema().fields)
