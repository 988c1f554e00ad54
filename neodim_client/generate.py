"""The request and the answer of Neodim's own `/generate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from neodim_client.wire import Json, from_fields, given_fields


@dataclass(frozen=True, kw_only=True)
class GenerateRequest:
    """Asks for texts that go on with a prompt. For numbers None and 0 mean off.

    Args:
        prompt: the text to go on with; it is cut from its front to fit.
        preamble: a text put in front of the prompt, and never cut.
        sequences_count: texts to generate.
        generated_tokens_count: tokens to generate for each text.
        max_total_tokens: tokens that preamble, prompt and generated text fit in.
        seed: the same seed gives the same text, None = each request differs.
        temperature: divides the scores: below 1 likely tokens become likelier.
        top_k: only this many of the best tokens may come.
        top_p: only the fewest best tokens of this mass may come, 0 < x < 1.
        tfs: tail-free sampling: lower cuts more of the tail, 0 < x <= 1.
        typical: locally typical sampling: mass that is kept, 0 < x < 1.
        top_a: cuts tokens below x times the best's square, 0 < x <= 1.
        penalty_alpha: above 0: contrastive search among the `top_k` (> 1) best tokens.
        warpers_order: order of the samplers; * stands for those not named.
        repetition_penalty: above 1, tokens that occurred become less likely.
        repetition_penalty_include_preamble: whether tokens of the preamble count as occurred.
        repetition_penalty_range: only so many of the last tokens count, 0 = all of them.
        repetition_penalty_slope: newer tokens are penalised more, along a curve.
        repetition_penalty_include_generated: whether generated tokens move the range, widen it, or
            stay out.
        repetition_penalty_truncate_to_input: whether the range is never longer than the input.
        repetition_penalty_prompt: a text whose tokens count instead of the prompt's, "" = none.
        required_server_version: refuse unless the server's version meets this (PEP 440).
        stop_strings: the first of these to appear ends a text.
        stop_strings_type: whether they are plain strings or regular expressions.
        stop_strings_required_matches_count: tokens in a row behind which one has to match.
        truncate_prompt_until: a prompt that is cut is cut further, through the first of these.
        words_whitelist: only tokens of these words may come, None = off.
        words_blacklist: these words may not come.
        words_blacklist_at_start: no token of these words may come first.
        no_repeat_ngram_size: no run of so many tokens may come twice.
        can_stop_early: whether the model may end a text before its count is reached.
        gpu_device: accepted and ignored by the server.
    """

    prompt: str = ""
    preamble: str = ""
    sequences_count: int = 1
    generated_tokens_count: int
    max_total_tokens: int
    seed: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    tfs: float | None = None
    typical: float | None = None
    top_a: float | None = None
    penalty_alpha: float | None = None
    warpers_order: Sequence[str] = ()
    repetition_penalty: float | None = None
    repetition_penalty_include_preamble: bool = False
    repetition_penalty_range: int = 0
    repetition_penalty_slope: float | None = None
    repetition_penalty_include_generated: Literal["slide", "expand", "ignore"] = "slide"
    repetition_penalty_truncate_to_input: bool = False
    repetition_penalty_prompt: str = ""
    required_server_version: str | None = None
    stop_strings: Sequence[str] = ()
    stop_strings_type: Literal["string", "regex"] = "string"
    stop_strings_required_matches_count: int = 1
    truncate_prompt_until: Sequence[str] = ()
    words_whitelist: Sequence[str] | None = None
    words_blacklist: Sequence[str] = ()
    words_blacklist_at_start: Sequence[str] = ()
    no_repeat_ngram_size: int | None = None
    can_stop_early: bool = False
    gpu_device: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The request's body; what is None is left out."""
        return given_fields(self)


@dataclass(frozen=True, kw_only=True)
class GeneratedSequence:
    """One generated text.

    Args:
        generated_text: the text, without the stop string that ended it.
        output_text: preamble, prompt and text.
        stop_string: which one ended it, "" = none.
        stop_string_match: what it matched.
        trimmed_tail: what was cut off behind that.
        repetition_penalty_text_at_end: what the repetition penalty saw at the end.
    """

    generated_text: str
    output_text: str
    stop_string: str
    stop_string_match: str
    trimmed_tail: str
    repetition_penalty_text_at_end: str


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """Memory of one GPU, in bytes, before, after and at the extremes in between."""

    name: str
    memory_total: int
    memory_reserved_start: int
    memory_allocated_start: int
    memory_free_start: int
    memory_reserved_end: int
    memory_allocated_end: int
    memory_free_end: int
    memory_reserved_min: int
    memory_allocated_min: int
    memory_free_min: int
    memory_reserved_max: int
    memory_allocated_max: int
    memory_free_max: int


@dataclass(frozen=True, kw_only=True)
class GenerateResponse:
    """The answer to a `/generate` request: what was used of the input, and the texts."""

    original_input_tokens_count: int
    used_input_tokens_count: int
    preamble: str
    preamble_tokens_count: int
    used_prompt: str
    original_prompt_tokens_count: int
    used_prompt_tokens_count: int
    repetition_penalty_text_at_start: str
    used_repetition_penalty_tokens_count_at_start: int
    used_repetition_penalty_range_at_start: int
    used_repetition_penalty_tokens_count_at_end: int
    used_repetition_penalty_range_at_end: int
    generated_tokens_count: int
    output_tokens_count: int
    sequences: Sequence[GeneratedSequence]
    gpus: Sequence[Gpu]

    @staticmethod
    def from_json(json: Json) -> GenerateResponse:
        """The answer that JSON is.

        Raises:
            KeyError: a field is missing.
        """
        return from_fields(
            GenerateResponse,
            json,
            sequences=tuple(from_fields(GeneratedSequence, each) for each in json["sequences"]),
            gpus=tuple(from_fields(Gpu, each) for each in json["gpus"]),
        )
