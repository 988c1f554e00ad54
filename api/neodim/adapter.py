"""Translates Neodim requests into canonical jobs.

Checks run in the protocol's order: types, server version, empty texts, patterns, sampler values.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from api.fields import shown
from api.neodim.schema import GenerateSchema
from api.request_schema import load as load_fields
from api.settings import Settings
from neodim_sampling.parameters import (
    WARPERS,
    ConstraintParams,
    StopKind,
    StopParams,
    WarperParams,
)
from neodim_sampling.penalty_parameters import RepetitionPenaltyParams
from neodim_sampling.prompts import PreamblePrompt
from neodim_sampling.text.stops import compile_patterns
from workers.contract.errors import InvalidParams
from workers.contract.settings import VERSION
from workers.contract.text_job import SEED_LIMIT, TextJob

MAX_PATTERN_CHARACTERS = 50_000
"""Characters of all patterns of one request: compiling takes up to 10 us for each."""

_SCHEMA = GenerateSchema()


def load(body: Mapping[str, Any], settings: Settings) -> TextJob:
    """The job that a request asks for; its seed is drawn here when it names none.

    Args:
        body: the request's JSON object.
        settings: names the model, which the protocol does not.

    Raises:
        RequestRejected: naming the field at fault.
    """
    fields = load_fields(_SCHEMA, body)
    _check_version(fields["required_server_version"])
    seed = fields["seed"]
    return TextJob(
        model=settings.model_name,
        prompt=_prompt(fields),
        stops=_stops(fields),
        warpers=_warpers(fields),
        penalty=_penalty(fields),
        constraints=_constraints(fields),
        max_new_tokens=fields["generated_tokens_count"],
        n_sequences=fields["sequences_count"],
        seed=secrets.randbelow(SEED_LIMIT) if seed is None else seed,
    )


def _check_version(wanted: str | None) -> None:
    if wanted is None:
        return
    try:
        is_met = SpecifierSet(wanted).contains(VERSION)
    except InvalidSpecifier:
        problem = f"{shown(wanted)} is no version specifier; allowed is what PEP 440 defines"
        raise InvalidParams("required_server_version", problem) from None
    if not is_met:
        problem = f"{shown(wanted)} is wanted, but this server's version is {VERSION}"
        raise InvalidParams("required_server_version", problem)


def _prompt(fields: Mapping[str, Any]) -> PreamblePrompt:
    return PreamblePrompt(
        preamble=fields["preamble"],
        text=fields["prompt"],
        max_total_tokens=fields["max_total_tokens"],
        truncate_until=_non_empty(fields["truncate_prompt_until"]),
    )


def _stops(fields: Mapping[str, Any]) -> StopParams | None:
    strings = _non_empty(fields["stop_strings"])
    if not strings:
        return None
    kind = fields["stop_strings_type"]
    if kind is StopKind.REGEX:
        if sum(map(len, strings)) > MAX_PATTERN_CHARACTERS:
            problem = f"all patterns together may have {MAX_PATTERN_CHARACTERS} characters"
            raise InvalidParams("stop_strings", problem)
        compile_patterns(strings)
    return StopParams(
        strings=strings,
        kind=kind,
        required_matches=max(1, fields["stop_strings_required_matches_count"]),
    )


def _warpers(fields: Mapping[str, Any]) -> WarperParams:
    return WarperParams(
        temperature=fields["temperature"] or None,
        top_k=fields["top_k"] or None,
        top_p=fields["top_p"] or None,
        typical=fields["typical"] or None,
        tfs=fields["tfs"] or None,
        top_a=fields["top_a"] or None,
        penalty_alpha=fields["penalty_alpha"] or None,
        order=tuple(map(_warper_name, fields["warpers_order"])),
    )


def _penalty(fields: Mapping[str, Any]) -> RepetitionPenaltyParams | None:
    penalty = fields["repetition_penalty"]
    # Made even when it is off, so that a bad value beside it does not pass unnoticed.
    params = RepetitionPenaltyParams(
        penalty=penalty or 1.0,
        range_tokens=fields["repetition_penalty_range"] or None,
        slope=fields["repetition_penalty_slope"] or None,
        include_preamble=fields["repetition_penalty_include_preamble"],
        include_generated=fields["repetition_penalty_include_generated"],
        truncate_to_input=fields["repetition_penalty_truncate_to_input"],
        prompt=fields["repetition_penalty_prompt"] or None,
    )
    return params if penalty else None


def _constraints(fields: Mapping[str, Any]) -> ConstraintParams:
    whitelist = fields["words_whitelist"]
    return ConstraintParams(
        words_whitelist=None if whitelist is None else tuple(whitelist),
        words_blacklist=tuple(fields["words_blacklist"]),
        words_blacklist_at_start=tuple(fields["words_blacklist_at_start"]),
        no_repeat_ngram_size=fields["no_repeat_ngram_size"] or None,
        can_stop_early=fields["can_stop_early"],
    )


def _non_empty(strings: list[str]) -> tuple[str, ...]:
    return tuple(each for each in strings if each)


def _warper_name(name: str) -> str:
    """A warper's name; in capitals it means the same, like every enumeration's."""
    return name.lower() if name.isupper() and name.lower() in WARPERS else name
