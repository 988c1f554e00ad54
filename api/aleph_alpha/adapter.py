"""Translates completion requests into canonical jobs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from api.aleph_alpha.attention_schema import attention_of
from api.aleph_alpha.schema import AlephAlphaCompletionSchema
from api.aleph_alpha.tokens import COMPLETION_TOKENS, LOG_PROBS, RAW_COMPLETION
from api.request_schema import load as load_fields
from api.settings import Settings
from neodim_sampling.parameters import (
    ConstraintParams,
    StopParams,
    WarperParams,
)
from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.prompt_items import ItemsPrompt
from neodim_sampling.text.optimising import optimised
from workers.contract.errors import InvalidParams, MissingCapability
from workers.contract.text_job import SEED_LIMIT, TextJob

NAMES: Mapping[str, str] = {
    "sequences_count": "n",
    "n_kept": "best_of",
    "generated_tokens_count": "maximum_tokens",
    "stop_strings": "stop_sequences",
}
"""Fields of these requests, by the names that canonical jobs have for them."""

_COMPLETION = AlephAlphaCompletionSchema()


def read_completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request of `/complete`.

    Raises:
        InvalidParams: naming the field at fault.
        MissingCapability: the request wants what no model here can do.
    """
    fields = load_fields(_COMPLETION, body)
    if fields["steering_concepts"]:
        raise MissingCapability("steering_concepts: models are not steered here; must be empty")
    most, least = fields["maximum_tokens"], fields["minimum_tokens"]
    if most is not None and least > most:
        raise InvalidParams("minimum_tokens", f"must be at most maximum_tokens, which is {most}")
    n, best_of = fields["n"], fields["best_of"]
    if best_of is not None and best_of <= n and (best_of, n) != (1, 1):
        raise InvalidParams("best_of", f"must be above n, which is {n}")
    if fields["stream"] and best_of is not None and best_of > n:
        raise InvalidParams("best_of", "is not for streams: the best is known at the end only")
    return fields


def completion_job(fields: Mapping[str, Any]) -> TextJob:
    """The job that a request of `/complete` asks for.

    Raises:
        InvalidParams: naming the field at fault.
    """
    n, best_of = fields["n"], fields["best_of"]
    is_choosing = best_of is not None and best_of > n
    try:
        return TextJob(
            model=fields["model"],
            prompt=_prompt(fields),
            max_new_tokens=fields["maximum_tokens"],
            n_sequences=best_of if is_choosing else n,
            n_kept=n if is_choosing else None,
            seed=secrets.randbelow(SEED_LIMIT),
            log_probs=fields["log_probs"],
            is_raw=True,
            answer_fields=_answer_fields(fields),
            stops=_stops(fields),
            warpers=_warpers(fields),
            adjustments=_adjustments(fields),
            constraints=_constraints(fields),
        )
    except InvalidParams as error:
        raise renamed(error) from None


def load_completion(body: Mapping[str, Any], settings: Settings) -> TextJob:
    """The job of a request that does not come over its own endpoint.

    Raises:
        RequestRejected: naming the field at fault.
    """
    fields = read_completion(body)
    if fields["stream"]:
        raise InvalidParams("stream", "must be false in a job; follow the job's events instead")
    return completion_job(fields)


def renamed(error: InvalidParams) -> InvalidParams:
    """An error about a canonical job as one about the request that it was made of."""
    if error.field not in NAMES:
        return error
    return InvalidParams(NAMES[error.field], error.problem)


def _prompt(fields: Mapping[str, Any]) -> ItemsPrompt:
    sent = fields["prompt"]
    read = sent if fields["disable_optimizations"] else optimised(sent)
    return ItemsPrompt(
        items=read,
        attention=attention_of(fields),
        echo=fields["echo"],
        is_changed=read != sent,
    )


def _answer_fields(fields: Mapping[str, Any]) -> tuple[str, ...]:
    tells_scores = fields["log_probs"] is not None
    wanted = {
        LOG_PROBS: tells_scores,
        RAW_COMPLETION: fields["raw_completion"] or fields["tokens"] or tells_scores,
        COMPLETION_TOKENS: fields["tokens"],
    }
    return tuple(name for name, is_wanted in wanted.items() if is_wanted)


def _stops(fields: Mapping[str, Any]) -> StopParams | None:
    strings = tuple(fields["stop_sequences"])
    return StopParams(strings=strings, takes_earliest=True, ends_each=True) if strings else None


def _warpers(fields: Mapping[str, Any]) -> WarperParams:
    """The samplers: of the three, those that are at 0 are not used; without any, the best token."""
    temperature, top_k, top_p = fields["temperature"], fields["top_k"], fields["top_p"]
    if top_k == 1 or not (temperature or top_k or top_p):
        return WarperParams(top_k=1)
    return WarperParams(
        temperature=temperature or None,
        top_k=top_k or None,
        top_p=top_p if 0 < top_p < 1 else None,
    )


def _adjustments(fields: Mapping[str, Any]) -> AdjustmentParams:
    exceptions = list(fields["penalty_exceptions"])
    if fields["penalty_exceptions_include_stop_sequences"]:
        exceptions += fields["stop_sequences"]
    return AdjustmentParams(
        logit_bias=fields["logit_bias"],
        presence_penalty=fields["presence_penalty"],
        frequency_penalty=fields["frequency_penalty"],
        sequence_penalty=fields["sequence_penalty"],
        sequence_min_length=fields["sequence_penalty_min_length"],
        is_presence_multiplicative=fields["use_multiplicative_presence_penalty"],
        is_frequency_multiplicative=fields["use_multiplicative_frequency_penalty"],
        is_sequence_multiplicative=fields["use_multiplicative_sequence_penalty"],
        counts_generated=fields["repetition_penalties_include_completion"],
        counts_prompt=fields["repetition_penalties_include_prompt"],
        counted_text=fields["penalty_bias"],
        exceptions=tuple(exceptions),
    )


def _constraints(fields: Mapping[str, Any]) -> ConstraintParams:
    return ConstraintParams(
        can_stop_early=True,
        can_be_empty=True,
        min_new_tokens=fields["minimum_tokens"],
        inclusions=tuple(fields["completion_bias_inclusion"]),
        is_inclusion_first_only=fields["completion_bias_inclusion_first_token_only"],
        exclusions=tuple(fields["completion_bias_exclusion"]),
        is_exclusion_first_only=fields["completion_bias_exclusion_first_token_only"],
        ends_where_stuck=True,
    )
