from __future__ import annotations

import pytest

from api.neodim.adapter import load
from api.neodim.schema import GenerateSchema
from neodim_sampling.parameters import (
    StopKind,
    StopParams,
    WarperParams,
)
from neodim_sampling.penalty_parameters import IncludeGenerated
from workers.contract.errors import InvalidParams
from workers.contract.job_body import decode_job, encode
from workers.contract.settings import Settings
from workers.contract.text_job import SEED_LIMIT

SETTINGS = Settings(model_name="tiny")
MINIMAL = {"prompt": "x", "generated_tokens_count": 4, "max_total_tokens": 64}

INTEGERS = (
    "sequences_count",
    "generated_tokens_count",
    "max_total_tokens",
    "seed",
    "top_k",
    "repetition_penalty_range",
    "stop_strings_required_matches_count",
    "no_repeat_ngram_size",
    "gpu_device",
)
FLOATS = (
    "temperature",
    "top_p",
    "tfs",
    "typical",
    "top_a",
    "penalty_alpha",
    "repetition_penalty",
    "repetition_penalty_slope",
)
BOOLEANS = (
    "repetition_penalty_include_preamble",
    "repetition_penalty_truncate_to_input",
    "can_stop_early",
)
STRINGS = ("prompt", "preamble", "repetition_penalty_prompt", "required_server_version")
LISTS = (
    "warpers_order",
    "stop_strings",
    "truncate_prompt_until",
    "words_whitelist",
    "words_blacklist",
    "words_blacklist_at_start",
)
ENUMS = ("repetition_penalty_include_generated", "stop_strings_type")

NO_INTEGER = ("8", 8.5, True, [8], {"a": 8}, 1e300, 2**63, -(2**63), 10**200)
NO_FLOAT = ("0.5", True, [0.5], {}, 10**400)
NO_BOOLEAN = ("false", 0, 1, 1.0, [], {})
NO_STRING = (5, 0.5, True, ["x"], {})
NO_LIST = ("x", 5, True, {}, [1], ["x", None], [["x"]], ["x"] * 10_001)
NO_CHOICE = ("allow", "Slide", "", 5, True, ["slide"], {})


def request(**fields):
    return load({**MINIMAL, **fields}, SETTINGS)


def error_of(**fields):
    with pytest.raises(InvalidParams) as caught:
        request(**fields)
    return str(caught.value)


def wrong_values():
    kinds = (
        (INTEGERS, NO_INTEGER),
        (FLOATS, NO_FLOAT),
        (BOOLEANS, NO_BOOLEAN),
        (STRINGS, NO_STRING),
        (LISTS, NO_LIST),
        (ENUMS, NO_CHOICE),
    )
    return [(name, value) for names, values in kinds for name in names for value in values]


@pytest.mark.parametrize(("name", "value"), wrong_values(), ids=lambda each: f"{each!r:.30}")
def test_a_value_of_the_wrong_type_is_refused_by_its_field(name, value):
    message = error_of(**{name: value})

    assert message.startswith(f"{name}: must ")
    assert len(message) < 200


def test_the_lists_of_this_test_have_every_field():
    assert {*INTEGERS, *FLOATS, *BOOLEANS, *STRINGS, *LISTS, *ENUMS} == set(GenerateSchema().fields)


@pytest.mark.parametrize("name", sorted(set(GenerateSchema().fields) - set(MINIMAL)))
def test_null_is_the_default(name):
    assert request(**{name: None, "seed": 1}) == request(seed=1)


@pytest.mark.parametrize("name", ["generated_tokens_count", "max_total_tokens"])
def test_a_required_field_may_not_be_missing_or_null(name):
    without = {each: value for each, value in MINIMAL.items() if each != name}

    with pytest.raises(InvalidParams, match=f"^{name}: is required$"):
        load(without, SETTINGS)
    assert error_of(**{name: None}) == f"{name}: is required"


def test_every_field_at_fault_is_named():
    message = error_of(bar=1, foo=None, top_k="x")

    assert message.split("; ") == [
        'top_k: must be an integer, not "x"',
        "bar: is not a known field",
        "foo: is not a known field",
    ]


def test_many_faults_are_counted_rather_than_listed():
    message = error_of(**{f"x{n}" * 100: 1 for n in range(100)})

    assert message.endswith("; and 92 more")
    assert len(message) < 1000


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"generated_tokens_count": -1}, "generated_tokens_count: must be at least 0"),
        (
            {"generated_tokens_count": 2**31},
            "generated_tokens_count: must be at most 2147483647, not 2147483648",
        ),
        ({"sequences_count": 0}, "sequences_count: must be from 1 to"),
        ({"sequences_count": -1}, "sequences_count: must be from 1 to"),
        ({"seed": -1}, "seed: must be at least 0"),
        ({"temperature": -1}, "temperature: must be above 0, not -1.0"),
        ({"top_k": -1}, "top_k: must be at least 1, not -1"),
        ({"top_p": 1.5}, "top_p: must be above 0 and below 1"),
        ({"typical": -0.5}, "typical: must be above 0 and below 1"),
        ({"tfs": 1.5}, "tfs: must be above 0 and at most 1"),
        ({"top_a": -1}, "top_a: must be above 0 and at most 1"),
        ({"penalty_alpha": -0.5, "top_k": 4}, "penalty_alpha: must be above 0"),
        ({"penalty_alpha": 0.6, "top_k": 1}, "top_k: must be at least 2"),
        ({"penalty_alpha": 0.6}, "top_k: must be at least 2"),
        ({"penalty_alpha": 0.6, "top_k": 4, "sequences_count": 2}, "sequences_count: must be 1"),
        ({"repetition_penalty": -2}, "repetition_penalty: must be above 0"),
        ({"repetition_penalty_slope": -1}, "repetition_penalty_slope: must be above 0"),
        ({"repetition_penalty_range": -1}, "repetition_penalty_range: must be at least 1"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size: must be at least 1"),
        ({"warpers_order": ["nope"]}, "warpers_order: 'nope' is not a warper"),
        ({"words_whitelist": []}, "words_whitelist: an empty list allows no word"),
        ({"words_blacklist": [" "]}, "words_blacklist: a word must have more than spaces"),
        ({"prompt": "", "preamble": ""}, "prompt: prompt and preamble cannot both be empty"),
        ({"required_server_version": "==1.2"}, "required_server_version: "),
        ({"required_server_version": "latest"}, "required_server_version: "),
        ({"required_server_version": ">=" + "1" * 2000}, "required_server_version: must have"),
        ({"stop_strings": ["["], "stop_strings_type": "regex"}, "stop_strings: "),
        ({"stop_strings": ["x" * 9000] * 6, "stop_strings_type": "regex"}, "stop_strings: all"),
        ({"stop_strings": ["x"] * 2001}, "stop_strings: must have at most 2000 entries"),
        ({"stop_strings_type": "glob"}, 'stop_strings_type: must be one of "string", "regex"'),
    ],
)
def test_values_out_of_range_are_refused(fields, message):
    assert error_of(**fields).startswith(message)


def test_types_are_checked_before_the_version_and_that_before_the_texts():
    version = {"required_server_version": "==1.2", "prompt": ""}

    assert error_of(top_k="x", **version).startswith("top_k")
    assert error_of(top_k=-1, **version).startswith("required_server_version")
    assert error_of(prompt="", top_k=-1).startswith("prompt")
    assert error_of(stop_strings=["["], stop_strings_type="regex", top_k=-1).startswith("stop")


@pytest.mark.parametrize("wanted", [None, "", ">=0.13", "~=0.12", "==0.14", ">=0.13, !=0.12, <2"])
def test_a_version_that_this_server_has_is_accepted(wanted):
    assert request(required_server_version=wanted)


@pytest.mark.parametrize("off", [None, 0, 0.0])
def test_zero_means_off(off):
    names = (*FLOATS, "top_k", "no_repeat_ngram_size", "repetition_penalty_range")

    assert request(**dict.fromkeys(names, off), seed=1) == request(seed=1)


def test_integers_and_integral_floats_stand_for_each_other():
    job = request(top_k=8.0, temperature=1, seed=5.0, repetition_penalty=2)

    assert (job.warpers.top_k, job.warpers.temperature, job.seed) == (8, 1.0, 5)
    assert isinstance(job.warpers.top_k, int)
    assert isinstance(job.warpers.temperature, float)
    assert isinstance(job.penalty.penalty, float)


def test_everything_arrives_in_the_job():
    job = load(
        {
            "prompt": "p",
            "preamble": "a",
            "sequences_count": 2,
            "generated_tokens_count": 3,
            "max_total_tokens": 9,
            "seed": SEED_LIMIT - 1,
            "temperature": 0.5,
            "top_k": 4,
            "top_p": 0.5,
            "tfs": 1,
            "typical": 0.2,
            "top_a": 0.1,
            "warpers_order": ["TFS", "*", "top_k"],
            "repetition_penalty": 1.5,
            "repetition_penalty_include_preamble": True,
            "repetition_penalty_range": 7,
            "repetition_penalty_slope": 2,
            "repetition_penalty_include_generated": "EXPAND",
            "repetition_penalty_truncate_to_input": True,
            "repetition_penalty_prompt": "q",
            "stop_strings": ["", "a+", ""],
            "stop_strings_type": "REGEX",
            "stop_strings_required_matches_count": -3,
            "truncate_prompt_until": ["", "."],
            "words_whitelist": ["w"],
            "words_blacklist": ["b"],
            "words_blacklist_at_start": [""],
            "no_repeat_ngram_size": 3,
            "can_stop_early": True,
            "gpu_device": 7,
        },
        SETTINGS,
    )

    assert (job.model, job.max_new_tokens, job.n_sequences) == ("tiny", 3, 2)
    assert job.seed == SEED_LIMIT - 1
    assert (job.prompt.preamble, job.prompt.text, job.prompt.max_total_tokens) == ("a", "p", 9)
    assert job.prompt.truncate_until == (".",)
    assert job.warpers == WarperParams(
        temperature=0.5,
        top_k=4,
        top_p=0.5,
        tfs=1.0,
        typical=0.2,
        top_a=0.1,
        order=("tfs", "*", "top_k"),
    )
    assert (job.penalty.penalty, job.penalty.range_tokens, job.penalty.slope) == (1.5, 7, 2.0)
    assert job.penalty.include_preamble
    assert job.penalty.truncate_to_input
    assert job.penalty.include_generated is IncludeGenerated.EXPAND
    assert job.penalty.prompt == "q"
    assert job.stops == StopParams(strings=("a+",), kind=StopKind.REGEX)
    assert job.constraints.words_whitelist == ("w",)
    assert job.constraints.words_blacklist == ("b",)
    assert job.constraints.words_blacklist_at_start == ("",)
    assert (job.constraints.no_repeat_ngram_size, job.constraints.can_stop_early) == (3, True)
    assert decode_job(encode(job)) == job


def test_a_penalty_of_one_is_kept_and_of_zero_is_off():
    assert request(repetition_penalty=1).penalty is not None
    assert request(repetition_penalty=0, repetition_penalty_range=5).penalty is None


def test_stop_strings_that_are_all_empty_are_off():
    assert request(stop_strings=["", ""]).stops is None


def test_a_thousand_stop_strings_are_accepted():
    assert len(request(stop_strings=[f"stop {n}" for n in range(1000)]).stops.strings) == 1000


def test_a_seed_is_drawn_for_each_request_that_names_none():
    seeds = {request().seed for _ in range(20)}

    assert len(seeds) == 20
    assert all(0 <= seed < SEED_LIMIT for seed in seeds)


def test_what_the_chat_client_sends_is_accepted():
    job = request(
        preamble="",
        temperature=None,
        words_whitelist=None,
        words_blacklist=[],
        words_blacklist_at_start=["\n", "<"],
        required_server_version=">=0.13",
        sequences_count=3,
        repetition_penalty_range=512.0,
    )

    assert job.constraints.words_blacklist_at_start == ("\n", "<")
