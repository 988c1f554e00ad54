from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizer_families import FAMILIES, load_codec, load_records

from neodim_sampling.errors import InvalidParams, PromptTooLong
from neodim_sampling.prompts import PreamblePrompt
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.fitting import FittedPrompt, fit_prompt

N_NEW = 7
CASES = [each for each in load_records("tokenize_cases.jsonl") if each["kind"] == "tokenize_input"]
FITTING = [each for each in CASES if "error" not in each and not each.get("over_limit")]
TOO_LONG = [each for each in CASES if "error" in each]
OVER_LIMIT = [each for each in CASES if each.get("over_limit")]


def fit(
    codec: TextCodec, text: str, limit: int, *, preamble: str = "", until: tuple[str, ...] = ()
) -> FittedPrompt:
    prompt = PreamblePrompt(
        preamble=preamble, text=text, max_total_tokens=limit + N_NEW, truncate_until=until
    )
    return fit_prompt(codec, prompt, N_NEW)


def fit_case(codec: TextCodec, case: dict[str, Any]) -> FittedPrompt:
    until = tuple(case["truncate_prompt_until"] or ())
    limit = case["max_input_tokens"]
    return fit(codec, case["prompt"], limit, preamble=case["preamble"], until=until)


def case_name(case: dict[str, Any]) -> str:
    return f"{case['preamble']!r} {case['truncate_prompt_until']} {case['max_input_tokens']}"


@pytest.mark.model
@pytest.mark.parametrize("case", FITTING, ids=case_name)
def test_fitted_prompt_is_the_recorded_one(smollm2: TextCodec, case: dict[str, Any]) -> None:
    fitted = fit_case(smollm2, case)

    assert fitted == FittedPrompt(
        input_ids=tuple(case["input_tokens"]),
        n_preamble=case["preamble_tokens_count"],
        preamble=case["preamble_out"],
        used_prompt=case["used_prompt"],
        n_original_input=case["original_input_tokens_count"],
        n_original_prompt=case["original_prompt_tokens_count"],
        n_used_prompt=case["used_prompt_tokens_count"],
    )


@pytest.mark.model
@pytest.mark.parametrize("case", TOO_LONG, ids=case_name)
def test_prompt_is_refused_where_recorded(smollm2: TextCodec, case: dict[str, Any]) -> None:
    with pytest.raises(PromptTooLong, match=f"leaves {case['max_input_tokens']} tokens"):
        fit_case(smollm2, case)


@pytest.mark.model
@pytest.mark.parametrize("case", OVER_LIMIT, ids=case_name)
def test_prompt_is_cut_on_where_the_cut_text_takes_more_tokens(
    smollm2: TextCodec, case: dict[str, Any]
) -> None:
    fitted = fit_case(smollm2, case)

    assert len(fitted.input_ids) <= case["max_input_tokens"]
    assert case["prompt"].endswith(fitted.used_prompt)
    assert len(fitted.used_prompt) < len(case["used_prompt"])


@pytest.mark.model
def test_cut_takes_the_next_occurrence_until_the_text_fits(smollm2: TextCodec) -> None:
    text = "lo there, my friend. How are you? Fine."

    fitted = fit(smollm2, text, 5, preamble="Hel", until=(" ",))

    assert fitted.used_prompt == "Fine."


@pytest.mark.parametrize("text", ["</s>", "<s><</s>s>"])
def test_prompt_of_special_tokens_alone_is_refused(text: str) -> None:
    with pytest.raises(InvalidParams, match="prompt: no text is left"):
        fit(load_codec("llama"), text, 20)


def test_preamble_alone_is_enough() -> None:
    codec = load_codec("llama")

    fitted = fit(codec, "</s>", 20, preamble="The cat")

    assert (fitted.input_ids, fitted.used_prompt) == (tuple(codec.encode("The cat")), "")


def test_error_names_the_limit_and_the_numbers() -> None:
    with pytest.raises(PromptTooLong) as caught:
        fit(load_codec("gpt2"), "x", 2, preamble="The cat sees")

    assert str(caught.value) == (
        "max_total_tokens: 9 leaves 2 tokens for the input beside the 7 to generate, "
        "but the preamble takes 3"
    )


@pytest.mark.parametrize("limit", [0, -3])
def test_no_room_at_all_is_refused(family_codec: TextCodec, limit: int) -> None:
    with pytest.raises(PromptTooLong, match="leaves 0 tokens"):
        fit(family_codec, "The cat", limit)


def test_room_for_the_leading_token_alone_is_refused() -> None:
    with pytest.raises(PromptTooLong, match="too few"):
        fit(load_codec("llama"), "The cat sat", 1)


@pytest.mark.parametrize("until", [(), (" ",)])
def test_leading_token_stays_in_front_of_a_cut_prompt(until: tuple[str, ...]) -> None:
    codec = load_codec("llama")

    fitted = fit(codec, "The old cat sees a red house near the river.", 6, until=until)

    assert fitted.input_ids[0] == codec.leading_ids[0]
    assert len(fitted.input_ids) <= 6
    assert fitted.n_used_prompt == len(fitted.input_ids)


def test_empty_truncation_strings_count_for_nothing() -> None:
    codec = load_codec("gpt2")

    fitted = fit(codec, "The old cat sees a house", 5, until=("", ""))

    assert fitted == fit(codec, "The old cat sees a house", 5)


def test_earliest_truncation_string_wins() -> None:
    fitted = fit(load_codec("gpt2"), "The old. cat, sees a house", 7, until=(",", "."))

    assert fitted.used_prompt == " cat, sees a house"


def test_first_listed_truncation_string_wins_at_the_same_place() -> None:
    fitted = fit(load_codec("gpt2"), "The old. cat sees a house", 6, until=(". c", "."))

    assert fitted.used_prompt == "at sees a house"


def test_prompt_is_dropped_behind_a_preamble_where_no_truncation_string_is_found() -> None:
    codec = load_codec("gpt2")

    fitted = fit(codec, "The old cat sees", 4, preamble="A house", until=("#",))

    assert (fitted.input_ids, fitted.used_prompt) == (tuple(codec.encode("A house")), "")


def test_special_token_across_the_seam_loses_its_part_in_the_prompt() -> None:
    fitted = fit(load_codec("llama"), "s>cat", 30, preamble="The <")

    assert (fitted.preamble, fitted.used_prompt) == ("The <", "cat")


class SeamTokenizer:
    """Spells "aaaa" with one token where it is the whole text, and X with three unless behind a."""

    PIECES = ("aaaa", "aX", "X", "", *"abcdt")
    all_special_tokens: list[str] = []  # noqa: RUF012 - never changed
    all_special_ids: list[int] = []  # noqa: RUF012 - never changed
    bos_token_id: int | None = None

    def __call__(
        self, text: str, *, add_special_tokens: bool, return_offsets_mapping: bool
    ) -> Mapping[str, Any]:
        ids = self.encode(text, add_special_tokens=add_special_tokens)
        return {"input_ids": ids, "offset_mapping": [(n, n + 1) for n in range(len(ids))]}

    def __len__(self) -> int:
        return len(self.PIECES)

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        if text == "aaaa":
            return [0]
        spelt = [self.PIECES.index(each) for each in re.findall("aX|.", text)]
        return [part for each in spelt for part in ([2, 3, 3] if each == 2 else [each])]

    def decode(
        self, token_ids: list[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool
    ) -> str:
        return "".join(self.PIECES[each] for each in token_ids)

    def convert_tokens_to_ids(self, tokens: str) -> int | None:
        return None


def test_cut_near_the_seam_keeps_the_whole_prompt_where_it_fits_on_its_own() -> None:
    codec = TextCodec(SeamTokenizer())

    fitted = fit(codec, "bcd", 5, preamble="aaaa")

    assert fitted.input_ids == (0, *codec.encode("bcd"))
    assert fitted.used_prompt == "bcd"


def test_cut_near_the_seam_never_repeats_text_of_the_preamble() -> None:
    codec = TextCodec(SeamTokenizer())

    fitted = fit(codec, "Xcd", 5, preamble="aaaa")

    assert fitted.input_ids == (0, *codec.encode("cd"))
    assert fitted.used_prompt == "cd"


PIECES = st.sampled_from(
    ["The", " cat", " old", " ", "  ", "\n", "é", "😀", "日本", ".", "x", "</s>", "<", "\u0301"]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@given(
    family=st.sampled_from(FAMILIES),
    preamble=TEXTS,
    text=TEXTS,
    limit=st.integers(0, 40),
    until=st.lists(st.sampled_from([" ", ".", "\n", "😀"]), max_size=2).map(tuple),
)
def test_fitted_prompt_keeps_its_promises(
    family: str, preamble: str, text: str, limit: int, until: tuple[str, ...]
) -> None:
    codec = load_codec(family)

    try:
        fitted = fit(codec, text or "x", limit, preamble=preamble, until=until)
    except (PromptTooLong, InvalidParams):
        return

    ids = list(fitted.input_ids)
    assert 0 < len(ids) <= limit
    assert ids[: len(codec.leading_ids)] == list(codec.leading_ids)
    assert fitted.n_preamble + fitted.n_used_prompt == len(ids)
    assert min(fitted.n_used_prompt, fitted.n_original_prompt) >= 0
    assert fitted.n_original_input == fitted.n_preamble + fitted.n_original_prompt
    assert fitted.preamble == codec.decode(codec.encode(codec.strip_special(preamble)))
    assert codec.decode(ids) == fitted.preamble + fitted.used_prompt
    whole = fit(codec, text or "x", 1000, preamble=preamble).used_prompt
    # Encoded anew, XGLM's text may lose some of its spaces.
    assert squeezed(whole).endswith(squeezed(fitted.used_prompt.lstrip("\ufffd")))


def squeezed(text: str) -> str:
    return "".join(text.split())
