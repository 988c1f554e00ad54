"""Translates the standard's text requests into canonical jobs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from api.rejections import UnsupportedParameter
from api.request_schema import load as load_fields
from api.settings import Settings
from api.standard.schema import LARGEST_BIAS, ChatSchema, CompletionSchema, GenerationSchema
from neodim_sampling.parameters import (
    ConstraintParams,
    StopParams,
    WarperParams,
)
from neodim_sampling.penalty_parameters import AdjustmentParams, RepetitionPenaltyParams
from neodim_sampling.prompts import ChatPrompt, PlainPrompt
from workers.contract.errors import InvalidParams, MissingCapability
from workers.contract.text_job import SEED_LIMIT, TextJob

UNSUPPORTED: Mapping[str, tuple[Any, ...]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "metadata": ({},),
    "modalities": (["text"],),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "prompt_cache_key": (),
    "reasoning_effort": ("none",),
    "response_format": ({"type": "text"},),
    "safety_identifier": (),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "verbosity": (),
    "web_search_options": (),
}
"""What OpenAI's requests may have and this server cannot do yet, refused rather than ignored; with
the values that ask for nothing but what is done anyway."""

NAMES: Mapping[str, str] = {
    "sequences_count": "n",
    "generated_tokens_count": "max_tokens",
    "minimum_tokens": "min_tokens",
    "stop_strings": "stop",
    "log_probs": "logprobs",
    "n_kept": "best_of",
}
"""Fields of these requests, by the names that canonical jobs have for them."""

MOST_TOKENS = ("max_tokens", "max_completion_tokens", "maximum_tokens")
"""Names that chats have for the tokens to generate."""

_CHAT, _COMPLETION = ChatSchema(), CompletionSchema()


def with_model(body: Mapping[str, Any], settings: Settings) -> Mapping[str, Any]:
    """A request that names a model: the service's own text model where it names none."""
    return body if body.get("model") is not None else {**body, "model": settings.model_name}


def read_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request of `/v1/chat/completions`.

    Raises:
        RequestRejected: naming the field at fault.
    """
    fields = _read(_CHAT, body)
    if fields["top_logprobs"] is not None and not fields["logprobs"]:
        raise InvalidParams("top_logprobs", "needs logprobs to be true")
    if fields["steering_concepts"]:
        raise MissingCapability("steering_concepts: models are not steered here; must be empty")
    return {**fields, "max_tokens": _most_tokens(fields)}


def chat_job(fields: Mapping[str, Any]) -> TextJob:
    """The job that a request of `/v1/chat/completions` asks for."""
    log_probs = (fields["top_logprobs"] or 0) if fields["logprobs"] else None
    return _job(
        fields,
        prompt=ChatPrompt(messages=fields["messages"]),
        max_new_tokens=fields["max_tokens"],
        log_probs=log_probs,
    )


def read_completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request of `/v1/completions`.

    Raises:
        RequestRejected: naming the field at fault.
    """
    fields = _read(_COMPLETION, body)
    best_of, n = fields["best_of"], fields["n"]
    if best_of is not None and best_of < max(n, 1):
        raise InvalidParams("best_of", f"must be at least n, which is {n}")
    if fields["stream"] and best_of is not None and best_of > n:
        raise InvalidParams("best_of", "must be n in a stream: the best is known at the end only")
    if fields["stream"] and fields["echo"]:
        raise InvalidParams("echo", "must be false in a stream")
    return fields


def completion_jobs(fields: Mapping[str, Any]) -> list[TextJob]:
    """The jobs that a request of `/v1/completions` asks for, one for each prompt.

    They share a seed, so that a prompt's text does not depend on those beside it.
    """
    seed = secrets.randbelow(SEED_LIMIT) if fields["seed"] is None else fields["seed"]
    best_of, n = fields["best_of"], fields["n"]
    is_choosing = best_of is not None and best_of > n
    return [
        _job(
            {**fields, "seed": seed, "n": best_of if is_choosing else n},
            prompt=_prompt(prompt, echo=fields["echo"]),
            max_new_tokens=fields["max_tokens"],
            n_kept=n if is_choosing else None,
            log_probs=fields["logprobs"],
        )
        for prompt in fields["prompt"]
    ]


def load_chat(body: Mapping[str, Any], settings: Settings) -> TextJob:
    """The job of a chat request that does not come over its own endpoint.

    Raises:
        RequestRejected: naming the field at fault.
    """
    return _only(with_model(body, settings), read_chat, lambda fields: [chat_job(fields)])


def load_completion(body: Mapping[str, Any], settings: Settings) -> TextJob:
    """The job of a completion request that does not come over its own endpoint: of one prompt.

    Raises:
        RequestRejected: naming the field at fault.
    """
    return _only(with_model(body, settings), read_completion, completion_jobs)


def renamed(error: InvalidParams) -> InvalidParams:
    """An error about a canonical job as one about the request that it was made of."""
    return InvalidParams(NAMES.get(error.field, error.field), error.problem)


def _only(
    body: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], dict[str, Any]],
    jobs_of: Callable[[Mapping[str, Any]], list[TextJob]],
) -> TextJob:
    fields = read(body)
    if fields["stream"]:
        raise InvalidParams("stream", "must be false in a job; follow the job's events instead")
    jobs = jobs_of(fields)
    if len(jobs) > 1:
        raise InvalidParams("prompt", "must be one prompt in a job")
    return jobs[0]


def _read(schema: GenerationSchema, body: Mapping[str, Any]) -> dict[str, Any]:
    for name, harmless in UNSUPPORTED.items():
        value = body.get(name)
        if value is not None and not any(_is_same(value, each) for each in harmless):
            raise UnsupportedParameter(name, "is not supported by this server yet")
    fields = load_fields(schema, {k: value for k, value in body.items() if k not in UNSUPPORTED})
    if fields["stream_options"] is not None and not fields["stream"]:
        raise InvalidParams("stream_options", "needs stream to be true")
    return fields


def _most_tokens(fields: Mapping[str, Any]) -> int | None:
    """How many tokens a chat may generate, by whichever name; None = as many as have room."""
    wanted = {name: fields[name] for name in MOST_TOKENS if fields[name] is not None}
    for name, other in pairwise(wanted):
        if wanted[name] != wanted[other]:
            raise InvalidParams(other, f"must not differ from {name}")
    return next(iter(wanted.values()), None)


def _is_same(value: Any, other: Any) -> bool:
    """Whether two JSON values are the same: 1 and true, which Python takes for equal, are not."""
    return type(value) is type(other) and bool(value == other)


def _prompt(prompt: str | tuple[int, ...], *, echo: bool) -> PlainPrompt:
    if isinstance(prompt, str):
        return PlainPrompt(text=prompt, echo=echo)
    return PlainPrompt(ids=prompt, echo=echo)


def _job(fields: Mapping[str, Any], **others: Any) -> TextJob:
    seed = fields["seed"]
    stops = fields["stop"]
    try:
        return TextJob(
            model=fields["model"],
            n_sequences=fields["n"],
            seed=secrets.randbelow(SEED_LIMIT) if seed is None else seed,
            user=fields["user"],
            warpers=_warpers(fields),
            penalty=_penalty(fields),
            adjustments=_adjustments(fields),
            constraints=_constraints(fields),
            stops=StopParams(strings=stops, takes_earliest=True, ends_each=True) if stops else None,
            **others,
        )
    except InvalidParams as error:
        raise renamed(error) from None


def _warpers(fields: Mapping[str, Any]) -> WarperParams:
    temperature, top_p = fields["temperature"], fields["top_p"]
    params = WarperParams(
        temperature=temperature or None,
        # Of a mass of 0 the one best token is kept, as of a top_k of 1.
        top_k=1 if top_p == 0 else fields["top_k"] or None,
        top_p=_share(top_p),
        min_p=fields["min_p"] or None,
        typical=_share(fields["typical"]),
        tfs=_share(fields["tfs"]),
        top_a=fields["top_a"] or None,
        order=tuple(fields["warpers_order"]),
    )
    # Of a temperature of 0 only the best token is left, whatever else would be kept beside it.
    return params if temperature else WarperParams(top_k=1)


def _share(value: float) -> float | None:
    return None if value in (0, 1) else value


def _penalty(fields: Mapping[str, Any]) -> RepetitionPenaltyParams | None:
    penalty = fields["repetition_penalty"]
    # Made even when it is off, so that a bad value beside it does not pass unnoticed.
    params = RepetitionPenaltyParams(
        penalty=penalty or 1.0,
        range_tokens=fields["repetition_penalty_range"] or None,
        slope=fields["repetition_penalty_slope"] or None,
        include_preamble=True,
        include_generated=fields["repetition_penalty_include_generated"],
        truncate_to_input=fields["repetition_penalty_truncate_to_input"],
        prompt=fields["repetition_penalty_prompt"] or None,
    )
    return params if penalty else None


def _adjustments(fields: Mapping[str, Any]) -> AdjustmentParams:
    return AdjustmentParams(
        presence_penalty=fields["presence_penalty"],
        frequency_penalty=fields["frequency_penalty"],
        logit_bias=tuple(
            (token, bias) for token, bias in fields["logit_bias"] if bias > -LARGEST_BIAS
        ),
    )


def _constraints(fields: Mapping[str, Any]) -> ConstraintParams:
    whitelist = fields["words_whitelist"]
    return ConstraintParams(
        banned_ids=tuple(token for token, bias in fields["logit_bias"] if bias <= -LARGEST_BIAS),
        words_whitelist=None if whitelist is None else tuple(whitelist),
        words_blacklist=tuple(fields["words_blacklist"]),
        words_blacklist_at_start=tuple(fields["words_blacklist_at_start"]),
        no_repeat_ngram_size=fields["no_repeat_ngram_size"] or None,
        min_new_tokens=fields["min_tokens"],
        can_stop_early=True,
        can_be_empty=True,
    )
