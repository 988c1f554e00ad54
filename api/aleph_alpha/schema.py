"""The fields of a completion: types, defaults and simple ranges, and what the answer has."""

from __future__ import annotations

from marshmallow import Schema, fields

from api.aleph_alpha.attention_schema import AttentionSchema
from api.aleph_alpha.prompt import PromptItems
from api.fields import MAX_WORDS, Flag, Number, Object, Text, Texts, Whole, says
from api.logit_bias import LogitBias
from workers.contract.text_job import MAX_TOP_LOG_PROBS

MAX_COMPLETIONS = 100
"""Most completions of one request, and most candidates for them."""

MAX_STOPS = 2_000


class AlephAlphaCompletionSchema(AttentionSchema):
    """A request of `POST /complete`; names beside these are not looked at."""

    prompt = PromptItems(
        required=True, metadata=says("A string, or a list of texts, token ids and pictures.")
    )
    stream = Flag(load_default=False, metadata=says("Whether the answer is an event stream."))
    maximum_tokens = Whole(
        low=0, load_default=None, metadata=says("Tokens to generate; null = up to the end.")
    )
    minimum_tokens = Whole(
        low=0, load_default=0, metadata=says("Tokens before which no text ends by itself.")
    )
    temperature = Number(
        low=0, load_default=0.0, metadata=says("Divides the scores; 0 is not used.")
    )
    top_k = Whole(low=0, load_default=0, metadata=says("Only so many best tokens; 0 is not used."))
    top_p = Number(
        low=0, high=1, load_default=0.0, metadata=says("Nucleus sampling; 0 is not used.")
    )
    presence_penalty = Number(
        load_default=0.0, metadata=says("Taken off the score of each token that occurred.")
    )
    frequency_penalty = Number(
        load_default=0.0, metadata=says("Taken off once for each time it occurred.")
    )
    sequence_penalty = Number(
        load_default=0.0, metadata=says("Taken off what would repeat a run of tokens.")
    )
    sequence_penalty_min_length = Whole(
        load_default=2, metadata=says("Tokens of the shortest such run.", minimum=2)
    )
    use_multiplicative_presence_penalty = Flag(
        load_default=False, metadata=says("Whether scores are divided by 1 + penalty instead.")
    )
    use_multiplicative_frequency_penalty = Flag(
        load_default=False, metadata=says("The same of the frequency penalty.")
    )
    use_multiplicative_sequence_penalty = Flag(
        load_default=False, metadata=says("The same of the sequence penalty.")
    )
    repetition_penalties_include_prompt = Flag(
        load_default=False, metadata=says("Whether penalties look at the prompt.")
    )
    repetition_penalties_include_completion = Flag(
        load_default=True, metadata=says("Whether they look at what is generated.")
    )
    penalty_bias = Text(
        load_default="", metadata=says("A text that they look at whatever else they do.")
    )
    penalty_exceptions = Texts(
        most=MAX_WORDS, load_default=[], metadata=says("Texts whose tokens are never penalised.")
    )
    penalty_exceptions_include_stop_sequences = Flag(
        load_default=True, metadata=says("Whether those of stop_sequences are not either.")
    )
    n = Whole(low=1, high=MAX_COMPLETIONS, load_default=1, metadata=says("Completions to return."))
    best_of = Whole(
        low=1,
        high=MAX_COMPLETIONS,
        load_default=None,
        metadata=says("Completions to generate, of which the n likeliest are returned."),
    )
    logit_bias = LogitBias(load_default=(), metadata=says("Added to scores, by token id."))
    log_probs = Whole(
        low=0,
        high=MAX_TOP_LOG_PROBS,
        load_default=None,
        metadata=says("Tell log-probabilities: of so many best tokens and the chosen one."),
    )
    stop_sequences = Texts(
        most=MAX_STOPS, load_default=[], metadata=says("Strings that end a completion.")
    )
    tokens = Flag(load_default=False, metadata=says("Whether to tell the tokens."))
    raw_completion = Flag(
        load_default=False, metadata=says("Whether to tell the text with its special tokens.")
    )
    echo = Flag(load_default=False, metadata=says("Whether completions begin with the prompt."))
    disable_optimizations = Flag(
        load_default=False, metadata=says("Whether the prompt is read exactly as it is.")
    )
    completion_bias_inclusion = Texts(
        most=MAX_WORDS, load_default=[], metadata=says("The only completions that may come.")
    )
    completion_bias_inclusion_first_token_only = Flag(
        load_default=False, metadata=says("Whether that binds the first token only.")
    )
    completion_bias_exclusion = Texts(
        most=MAX_WORDS, load_default=[], metadata=says("Texts that may not come.")
    )
    completion_bias_exclusion_first_token_only = Flag(
        load_default=False, metadata=says("Whether that binds the first token only.")
    )
    steering_concepts = Texts(
        most=MAX_WORDS, load_default=[], metadata=says("Refused unless it is empty.")
    )


class AlephAlphaResultSchema(Schema):
    """One completion."""

    index = fields.Integer()
    completion = fields.String()
    raw_completion = fields.String(metadata={"description": "With tokens or log_probs too."})
    completion_tokens = fields.List(fields.String(), metadata={"description": "With tokens."})
    log_probs = fields.List(Object(), metadata={"description": "A map a token; with log_probs."})
    finish_reason = fields.String(
        metadata={"description": "maximum_tokens, end_of_text or stop_sequence_reached."}
    )


class AlephAlphaAnswerSchema(Schema):
    """The answer to a completion request; documentation, `renderer` writes it."""

    model_version = fields.String()
    completions = fields.List(fields.Nested(AlephAlphaResultSchema))
    num_tokens_prompt_total = fields.Integer()
    num_tokens_generated = fields.Integer()
    optimized_prompt = fields.List(
        Object(), metadata={"description": "What was read, where it is not what was sent."}
    )
