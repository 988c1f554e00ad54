"""The fields of the Neodim protocol: types and defaults only, ranges belong to the parameters."""

from __future__ import annotations

from marshmallow import Schema, fields

from api.fields import Choice, Flag, Number, Text, Texts, Whole
from api.request_schema import RequestSchema
from neodim_sampling.parameters import IncludeGenerated, StopKind
from workers.contract.text_job import SEED_LIMIT

MAX_STOP_STRINGS = 2_000
MAX_WORDS = 10_000
MAX_ORDER = 100
MAX_VERSION_LENGTH = 1_000


class GenerateSchema(RequestSchema):
    """A request of `POST /generate`."""

    prompt = Text(load_default="")
    preamble = Text(load_default="")
    sequences_count = Whole(load_default=1)
    generated_tokens_count = Whole(required=True)
    max_total_tokens = Whole(required=True)
    seed = Whole(low=0, high=SEED_LIMIT - 1, load_default=None)
    temperature = Number(load_default=None)
    top_k = Whole(load_default=None)
    top_p = Number(load_default=None)
    tfs = Number(load_default=None)
    typical = Number(load_default=None)
    top_a = Number(load_default=None)
    penalty_alpha = Number(load_default=None)
    warpers_order = Texts(most=MAX_ORDER, load_default=list)
    repetition_penalty = Number(load_default=None)
    repetition_penalty_include_preamble = Flag(load_default=False)
    repetition_penalty_range = Whole(load_default=0)
    repetition_penalty_slope = Number(load_default=None)
    repetition_penalty_include_generated = Choice(
        IncludeGenerated, load_default=IncludeGenerated.SLIDE
    )
    repetition_penalty_truncate_to_input = Flag(load_default=False)
    repetition_penalty_prompt = Text(load_default="")
    required_server_version = Text(max_length=MAX_VERSION_LENGTH, load_default=None)
    stop_strings = Texts(most=MAX_STOP_STRINGS, load_default=list)
    stop_strings_type = Choice(StopKind, load_default=StopKind.STRING)
    stop_strings_required_matches_count = Whole(load_default=1)
    truncate_prompt_until = Texts(most=MAX_WORDS, load_default=list)
    words_whitelist = Texts(most=MAX_WORDS, load_default=None)
    words_blacklist = Texts(most=MAX_WORDS, load_default=list)
    words_blacklist_at_start = Texts(most=MAX_WORDS, load_default=list)
    no_repeat_ngram_size = Whole(load_default=None)
    can_stop_early = Flag(load_default=False)
    gpu_device = Whole(load_default=None, metadata={"description": "Accepted and ignored."})


class GeneratedSequenceSchema(Schema):
    """One generated text."""

    generated_text = fields.String()
    output_text = fields.String()
    stop_string = fields.String()
    stop_string_match = fields.String()
    trimmed_tail = fields.String()
    repetition_penalty_text_at_end = fields.String()


class GpuSchema(Schema):
    """Memory of one GPU, in bytes."""

    name = fields.String()
    memory_total = fields.Integer()
    memory_reserved_start = fields.Integer()
    memory_allocated_start = fields.Integer()
    memory_free_start = fields.Integer()
    memory_reserved_end = fields.Integer()
    memory_allocated_end = fields.Integer()
    memory_free_end = fields.Integer()
    memory_reserved_min = fields.Integer()
    memory_allocated_min = fields.Integer()
    memory_free_min = fields.Integer()
    memory_reserved_max = fields.Integer()
    memory_allocated_max = fields.Integer()
    memory_free_max = fields.Integer()


class GeneratedSchema(Schema):
    """The answer to a request of `POST /generate`; documentation, `renderer` writes it."""

    original_input_tokens_count = fields.Integer()
    used_input_tokens_count = fields.Integer()
    preamble = fields.String()
    preamble_tokens_count = fields.Integer()
    used_prompt = fields.String()
    original_prompt_tokens_count = fields.Integer()
    used_prompt_tokens_count = fields.Integer()
    repetition_penalty_text_at_start = fields.String()
    used_repetition_penalty_tokens_count_at_start = fields.Integer()
    used_repetition_penalty_range_at_start = fields.Integer()
    used_repetition_penalty_tokens_count_at_end = fields.Integer()
    used_repetition_penalty_range_at_end = fields.Integer()
    generated_tokens_count = fields.Integer()
    output_tokens_count = fields.Integer()
    sequences = fields.List(fields.Nested(GeneratedSequenceSchema))
    gpus = fields.List(fields.Nested(GpuSchema))


class NeodimErrorSchema(Schema):
    """An error."""

    error = fields.String(metadata={"example": "temperature: must be above 0, not -1.0"})
