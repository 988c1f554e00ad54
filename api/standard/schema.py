"""The fields of the standard's text requests: their types, defaults and simple ranges."""

from __future__ import annotations

from marshmallow import Schema, fields

from api.fields import MAX_ORDER, MAX_WORDS, Choice, Flag, Number, Object, Text, Texts, Whole, says
from api.logit_bias import LogitBias
from api.request_schema import RequestSchema
from api.standard.fields import Messages, Prompts, Stops, StreamOptions
from neodim_sampling.penalty_parameters import IncludeGenerated
from workers.contract.text_job import MAX_SEQUENCES, MAX_TOP_LOG_PROBS, SEED_LIMIT

DEFAULT_COMPLETION_TOKENS = 16
"""What OpenAI's completions generate when nobody says how much."""

LARGEST_PENALTY = 2.0
"""Presence and frequency penalty, on either side of 0, as OpenAI has them."""

LARGEST_BIAS = 100.0
"""Of a token, on either side of 0; on the lower one it forbids the token."""

MAX_USER_LENGTH = 512


class GenerationSchema(RequestSchema):
    """What chat and completions have in common."""

    model = Text(
        required=True,
        metadata=says("Which model, as /v1/models lists them; by default the service's own."),
    )
    stream = Flag(load_default=False, metadata=says("Whether the answer is an event stream."))
    stream_options = StreamOptions(
        load_default=None,
        metadata=says("With include_usage the usage comes once more at the end."),
    )
    n = Whole(load_default=1, metadata=says("Texts to generate.", minimum=1))
    stop = Stops(load_default=(), metadata=says("Up to 16 strings that end a text."))
    seed = Whole(
        low=0,
        high=SEED_LIMIT - 1,
        load_default=None,
        metadata=says("The same seed gives the same text; without one each request differs."),
    )
    user = Text(
        load_default="", max_length=MAX_USER_LENGTH, metadata=says("Who asks; kept with the job.")
    )
    temperature = Number(
        load_default=1.0,
        low=0,
        metadata=says("Divides the scores; 0 takes the best token always."),
    )
    top_p = Number(load_default=1.0, low=0, high=1, metadata=says("Nucleus sampling; 1 is off."))
    presence_penalty = Number(
        load_default=0.0,
        low=-LARGEST_PENALTY,
        high=LARGEST_PENALTY,
        metadata=says("Taken off the score of each token generated before."),
    )
    frequency_penalty = Number(
        load_default=0.0,
        low=-LARGEST_PENALTY,
        high=LARGEST_PENALTY,
        metadata=says("Taken off once for each time it was generated."),
    )
    logit_bias = LogitBias(
        largest=LARGEST_BIAS,
        load_default=(),
        metadata=says("Added to scores, by token id; -100 forbids a token."),
    )
    min_tokens = Whole(
        load_default=0,
        low=0,
        metadata=says("Tokens before which a text may end at a stop string only."),
    )
    top_k = Whole(load_default=0, low=0, metadata=says("Only so many best tokens; 0 is off."))
    min_p = Number(
        load_default=0.0,
        low=0,
        high=1,
        metadata=says("Least share of the best token's probability."),
    )
    typical = Number(
        load_default=0.0,
        low=0,
        high=1,
        metadata=says("Locally typical sampling; 0 and 1 are off."),
    )
    tfs = Number(
        load_default=0.0, low=0, high=1, metadata=says("Tail-free sampling; 0 and 1 are off.")
    )
    top_a = Number(load_default=0.0, low=0, high=1, metadata=says("Top-a sampling; 0 is off."))
    warpers_order = Texts(
        load_default=[], most=MAX_ORDER, metadata=says("Order of the samplers, as in /generate.")
    )
    repetition_penalty = Number(
        load_default=0.0,
        low=0,
        metadata=says("Divides scores of what occurred before; 0 and 1 are off."),
    )
    repetition_penalty_range = Whole(
        load_default=0, low=0, metadata=says("Newest tokens that it looks at; 0 is all.")
    )
    repetition_penalty_slope = Number(
        load_default=0.0, low=0, metadata=says("Makes it weaker for older tokens; 0 is off.")
    )
    repetition_penalty_include_generated = Choice(
        IncludeGenerated,
        load_default=IncludeGenerated.SLIDE,
        metadata=says("How generated tokens enter what it looks at."),
    )
    repetition_penalty_truncate_to_input = Flag(
        load_default=False, metadata=says("Whether its range is at most the prompt's length.")
    )
    repetition_penalty_prompt = Text(
        load_default="", metadata=says("A text that it looks at in the prompt's place.")
    )
    no_repeat_ngram_size = Whole(
        load_default=0, low=0, metadata=says("No run of so many tokens comes twice; 0 is off.")
    )
    words_whitelist = Texts(
        load_default=None, most=MAX_WORDS, metadata=says("The only words that may come.")
    )
    words_blacklist = Texts(
        load_default=[], most=MAX_WORDS, metadata=says("Words that may not come.")
    )
    words_blacklist_at_start = Texts(
        load_default=[], most=MAX_WORDS, metadata=says("Words that a text may not begin with.")
    )


class ChatSchema(GenerationSchema):
    """A request of `POST /v1/chat/completions`."""

    messages = Messages(required=True, metadata=says("The conversation so far."))
    max_tokens = Whole(
        load_default=None, low=1, metadata=says("Tokens to generate; null = up to the end.")
    )
    max_completion_tokens = Whole(
        load_default=None, low=1, metadata=says("The same as max_tokens.")
    )
    maximum_tokens = Whole(
        load_default=None, low=1, metadata=says("The same as max_tokens, for Aleph Alpha clients.")
    )
    steering_concepts = Texts(
        load_default=[], most=MAX_WORDS, metadata=says("Refused unless it is empty.")
    )
    hosting = Text(load_default=None, metadata=says("Sent by Aleph Alpha clients; has no effect."))
    tags = Texts(
        load_default=[],
        most=MAX_WORDS,
        metadata=says("Sent by Aleph Alpha clients; has no effect."),
    )
    logprobs = Flag(load_default=False, metadata=says("Whether to tell log-probabilities."))
    top_logprobs = Whole(
        load_default=None,
        low=0,
        high=MAX_TOP_LOG_PROBS,
        metadata=says("Alternatives to tell of each token; needs logprobs."),
    )


class CompletionSchema(GenerationSchema):
    """A request of `POST /v1/completions`."""

    prompt = Prompts(
        required=True,
        metadata=says("A string, token ids, or a list of either: one text for each."),
    )
    max_tokens = Whole(
        load_default=DEFAULT_COMPLETION_TOKENS, low=0, metadata=says("Tokens to generate.")
    )
    echo = Flag(load_default=False, metadata=says("Whether the texts begin with the prompt."))
    logprobs = Whole(
        load_default=None,
        low=0,
        high=MAX_TOP_LOG_PROBS,
        metadata=says("Tell log-probabilities, with so many alternatives of each token."),
    )
    best_of = Whole(
        high=MAX_SEQUENCES,
        load_default=None,
        metadata=says("Texts to generate, of which the n likeliest are the answer.", minimum=1),
    )


class UsageSchema(Schema):
    """How many tokens were read and generated."""

    prompt_tokens = fields.Integer()
    completion_tokens = fields.Integer()
    total_tokens = fields.Integer()


class AnswerSchema(Schema):
    """The answer to a text request; documentation, `renderer` writes it."""

    code = fields.Integer(metadata={"description": "0"})
    message = fields.String(metadata={"description": "success"})
    id = fields.String()
    object = fields.String()
    created = fields.Integer(metadata={"description": "Seconds since 1970."})
    model = fields.String()
    system_fingerprint = fields.String()
    choices = fields.List(Object())
    usage = fields.Nested(UsageSchema)


class ModelSchema(Schema):
    """A model that requests can name."""

    id = fields.String()
    object = fields.String()
    created = fields.Integer()
    owned_by = fields.String()
    model = fields.String(metadata={"description": "The same as id."})
    url = fields.String(metadata={"description": "Where its requests go."})
    type = fields.Integer(metadata={"description": "0 text, 1 text to image, 2 image editing."})
    context_length = fields.Integer(allow_none=True)
    state = fields.String(metadata={"description": "ready, loading, draining or absent."})
    workers = fields.Integer(metadata={"description": "Workers that take its requests now."})


class ModelsSchema(Schema):
    """All models."""

    project = fields.String()
    object = fields.String()
    data = fields.List(fields.Nested(ModelSchema))
