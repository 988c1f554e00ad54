"""The fields of the Neodim protocol: types and defaults only, ranges belong to the parameters."""

from __future__ import annotations

from marshmallow import Schema, fields

from api.fields import MAX_ORDER, MAX_WORDS, Choice, Flag, Number, Text, Texts, Whole, says
from api.request_schema import RequestSchema
from neodim_sampling.parameters import StopKind
from neodim_sampling.penalty_parameters import IncludeGenerated
from workers.contract.text_job import SEED_LIMIT

MAX_STOP_STRINGS = 2_000
MAX_VERSION_LENGTH = 1_000


class GenerateSchema(RequestSchema):
    """A request of `POST /generate`."""

    prompt = Text(
        load_default="",
        metadata=says("The text to go on with. It is cut from its front to fit."),
    )
    preamble = Text(
        load_default="",
        metadata=says("A text put in front of the prompt, and never cut."),
    )
    sequences_count = Whole(
        load_default=1,
        metadata=says("Texts to generate, at most as many as the worker has slots.", minimum=1),
    )
    generated_tokens_count = Whole(
        required=True,
        metadata=says("Tokens to generate for each text.", minimum=0),
    )
    max_total_tokens = Whole(
        required=True,
        metadata=says("Tokens that preamble, prompt and generated text fit in.", minimum=1),
    )
    seed = Whole(
        low=0,
        high=SEED_LIMIT - 1,
        load_default=None,
        metadata=says("The same seed gives the same text; without one each request differs."),
    )
    temperature = Number(
        load_default=None,
        metadata=says("Divides the scores: below 1 likely tokens become likelier. 0 is off."),
    )
    top_k = Whole(
        load_default=None,
        metadata=says("Only this many of the best tokens may come. 0 is off.", minimum=0),
    )
    top_p = Number(
        load_default=None,
        metadata=says("Only the fewest best tokens of this mass may come. 0 < x < 1, 0 is off."),
    )
    tfs = Number(
        load_default=None,
        metadata=says("Tail-free sampling: lower cuts more of the tail. 0 < x <= 1, 0 is off."),
    )
    typical = Number(
        load_default=None,
        metadata=says("Locally typical sampling: mass that is kept. 0 < x < 1, 0 is off."),
    )
    top_a = Number(
        load_default=None,
        metadata=says("Cuts tokens below x times the best's square. 0 < x <= 1, 0 is off."),
    )
    penalty_alpha = Number(
        load_default=None,
        metadata=says("Above 0: contrastive search among the top_k (> 1) best tokens."),
    )
    warpers_order = Texts(
        most=MAX_ORDER,
        load_default=list,
        metadata=says("Order of the samplers; * stands for those not named."),
    )
    repetition_penalty = Number(
        load_default=None,
        metadata=says("Above 1, tokens that occurred become less likely. 0 is off."),
    )
    repetition_penalty_include_preamble = Flag(
        load_default=False,
        metadata=says("Whether tokens of the preamble count as occurred."),
    )
    repetition_penalty_range = Whole(
        load_default=0,
        metadata=says("Only so many of the last tokens count. 0 is all of them.", minimum=0),
    )
    repetition_penalty_slope = Number(
        load_default=None,
        metadata=says("Newer tokens are penalised more, along a curve. 0 is off."),
    )
    repetition_penalty_include_generated = Choice(
        IncludeGenerated,
        load_default=IncludeGenerated.SLIDE,
        metadata=says("Whether generated tokens move the range, widen it, or stay out."),
    )
    repetition_penalty_truncate_to_input = Flag(
        load_default=False,
        metadata=says("Whether the range is never longer than the input."),
    )
    repetition_penalty_prompt = Text(
        load_default="",
        metadata=says("A text whose tokens count instead of the prompt's."),
    )
    required_server_version = Text(
        max_length=MAX_VERSION_LENGTH,
        load_default=None,
        metadata=says("Refuse unless the server's version meets this (PEP 440)."),
    )
    stop_strings = Texts(
        most=MAX_STOP_STRINGS,
        load_default=list,
        metadata=says("The first of these to appear ends a text."),
    )
    stop_strings_type = Choice(
        StopKind,
        load_default=StopKind.STRING,
        metadata=says("Whether they are plain strings or regular expressions."),
    )
    stop_strings_required_matches_count = Whole(
        load_default=1,
        metadata=says("Tokens in a row behind which one has to match."),
    )
    truncate_prompt_until = Texts(
        most=MAX_WORDS,
        load_default=list,
        metadata=says("A prompt that is cut is cut further, through the first of these."),
    )
    words_whitelist = Texts(
        most=MAX_WORDS,
        load_default=None,
        metadata=says("Only tokens of these words may come."),
    )
    words_blacklist = Texts(
        most=MAX_WORDS,
        load_default=list,
        metadata=says("These words may not come."),
    )
    words_blacklist_at_start = Texts(
        most=MAX_WORDS,
        load_default=list,
        metadata=says("No token of these words may come first."),
    )
    no_repeat_ngram_size = Whole(
        load_default=None,
        metadata=says("No run of so many tokens may come twice. 0 is off.", minimum=0),
    )
    can_stop_early = Flag(
        load_default=False,
        metadata=says("Whether the model may end a text before its count is reached."),
    )
    gpu_device = Whole(load_default=None, metadata=says("Accepted and ignored."))


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
