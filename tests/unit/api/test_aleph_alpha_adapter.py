from __future__ import annotations

import pytest
from aleph_alpha_client import CompletionRequest, Prompt, Text, TextControl

from api.aleph_alpha.adapter import completion_job, load_completion, read_completion, renamed
from api.aleph_alpha.schema import AlephAlphaCompletionSchema
from neodim_sampling.parameters import (
    ConstraintParams,
    StopParams,
    WarperParams,
)
from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.prompt_items import AttentionParams, IdsItem, ItemsPrompt, TextItem
from neodim_sampling.prompt_items import TextControl as ReadTextControl
from workers.contract.errors import InvalidParams, MissingCapability
from workers.contract.job_body import decode_job, encode
from workers.contract.settings import Settings

SETTINGS = Settings(model_name="tiny")
REQUEST = {"model": "tiny", "prompt": "Hello"}
GREEDY = WarperParams(top_k=1)

INTEGERS = (
    "maximum_tokens",
    "minimum_tokens",
    "top_k",
    "sequence_penalty_min_length",
    "n",
    "best_of",
    "log_probs",
)
NUMBERS = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "sequence_penalty",
    "contextual_control_threshold",
)
FLAGS = (
    "stream",
    "use_multiplicative_presence_penalty",
    "use_multiplicative_frequency_penalty",
    "use_multiplicative_sequence_penalty",
    "repetition_penalties_include_prompt",
    "repetition_penalties_include_completion",
    "penalty_exceptions_include_stop_sequences",
    "tokens",
    "raw_completion",
    "echo",
    "disable_optimizations",
    "completion_bias_inclusion_first_token_only",
    "completion_bias_exclusion_first_token_only",
    "control_log_additive",
)
STRINGS = ("model", "penalty_bias")
LISTS = (
    "penalty_exceptions",
    "stop_sequences",
    "completion_bias_inclusion",
    "completion_bias_exclusion",
    "steering_concepts",
)
WRONG = {
    **dict.fromkeys(INTEGERS, ("8", 1.5, True, [8])),
    **dict.fromkeys(NUMBERS, ("0.5", True, [0.5], 10**400)),
    **dict.fromkeys(FLAGS, ("yes", 0, 1, [])),
    **dict.fromkeys(STRINGS, (7, True, ["x"])),
    **dict.fromkeys(LISTS, ("x", 7, [7], [None])),
    "prompt": (7, {"type": "text", "data": "x"}, [["x"]]),
    "logit_bias": ([1], {"x": 1}, {"01": 1}, {"-1": 1}, {"1": "2"}, {"1": None}),
}


def job(**fields):
    return completion_job(read_completion({**REQUEST, **fields}))


def test_a_request_of_nothing_but_a_prompt_asks_for_one_greedy_text_to_its_end():
    made = job()

    assert made.prompt == ItemsPrompt(items=(TextItem(text="Hello"),))
    assert (made.model, made.max_new_tokens, made.n_sequences, made.n_kept) == (
        "tiny",
        None,
        1,
        None,
    )
    assert (made.warpers, made.stops, made.penalty) == (GREEDY, None, None)
    assert made.adjustments == AdjustmentParams()
    assert made.constraints == ConstraintParams(
        can_stop_early=True, can_be_empty=True, ends_where_stuck=True
    )
    assert made.is_raw
    assert (made.log_probs, made.answer_fields) == (None, ())


@pytest.mark.parametrize("prompt", ["Hello", [{"type": "text", "data": "Hello", "controls": []}]])
def test_what_the_vendors_client_sends_for_a_prompt_alone_is_the_same(prompt):
    sent = CompletionRequest(prompt=Prompt.from_text("Hello")).to_json()

    made = completion_job(read_completion({**sent, "model": "tiny", "prompt": prompt}))

    # Each draw is fresh.
    assert {**encoded(made), "seed": 0} == {**encoded(job()), "seed": 0}


def encoded(made):
    return {name: getattr(made, name) for name in made.__dataclass_fields__}


def test_each_request_draws_anew():
    assert job().seed != job().seed


def test_null_means_the_default_in_every_field_that_has_one():
    names = AlephAlphaCompletionSchema().fields.keys() - {"model", "prompt"}

    assert {**encoded(job(**dict.fromkeys(names))), "seed": 0} == {**encoded(job()), "seed": 0}


@pytest.mark.parametrize("field", ["model", "prompt"])
@pytest.mark.parametrize("body", [{}, {"model": None, "prompt": None}])
def test_model_and_prompt_have_to_be_said(field, body):
    others = {name: value for name, value in REQUEST.items() if name != field}

    with pytest.raises(InvalidParams, match=f"{field}: is required"):
        read_completion({**body, **others})


def test_unknown_fields_mean_nothing():
    assert job(hosting="aleph-alpha", tags=["a"], something_new={"x": 1}).model == "tiny"


def test_every_field_is_in_the_table_of_wrong_values():
    assert AlephAlphaCompletionSchema().fields.keys() == WRONG.keys()


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in WRONG.items() for value in values]
)
def test_a_value_of_the_wrong_type_is_refused_by_its_name(field, value):
    with pytest.raises(InvalidParams, match=f"^{field}: "):
        read_completion({**REQUEST, field: value})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"maximum_tokens": -1}, "maximum_tokens: must be at least 0"),
        ({"minimum_tokens": 5, "maximum_tokens": 4}, "minimum_tokens: must be at most maximum_tok"),
        ({"temperature": -0.1}, "temperature: must be at least 0"),
        ({"top_k": -1}, "top_k: must be at least 0"),
        ({"top_p": 1.1}, "top_p: must be at most 1"),
        ({"n": 0}, "n: must be at least 1"),
        ({"n": 101}, "n: must be at most 100"),
        ({"best_of": 0}, "best_of: must be at least 1"),
        ({"best_of": 101}, "best_of: must be at most 100"),
        ({"best_of": 2, "n": 2}, "best_of: must be above n, which is 2"),
        ({"best_of": 1, "n": 2}, "best_of: must be above n, which is 2"),
        ({"best_of": 2, "stream": True}, "best_of: is not for streams"),
        ({"log_probs": 21}, "log_probs: must be at most 20"),
        ({"log_probs": -1}, "log_probs: must be at least 0"),
        ({"sequence_penalty_min_length": 1}, "sequence_penalty_min_length: must be at least 2"),
        ({"contextual_control_threshold": 1.5}, "contextual_control_threshold: must be at most 1"),
        ({"stop_sequences": [""]}, "stop_sequences: must be non-empty strings"),
        ({"penalty_exceptions": [""]}, "penalty_exceptions: must be non-empty strings"),
        ({"completion_bias_inclusion": [""]}, "completion_bias_inclusion: must be non-empty"),
        (
            {"completion_bias_inclusion": [" yes"], "completion_bias_exclusion": [" yes, "]},
            "completion_bias_inclusion: ",
        ),
        (
            {"presence_penalty": -1, "use_multiplicative_presence_penalty": True},
            "presence_penalty: must be above -1 where it is multiplicative",
        ),
    ],
)
def test_a_value_out_of_its_range_is_refused_by_its_name(fields, problem):
    with pytest.raises(InvalidParams) as found:
        job(**fields)

    assert str(found.value).startswith(problem)


def test_steering_is_what_no_model_here_can_do():
    with pytest.raises(MissingCapability, match="steering_concepts"):
        job(steering_concepts=["x"])


def test_no_concepts_steer_nothing():
    assert job(steering_concepts=[]).model == "tiny"


@pytest.mark.parametrize(
    ("fields", "warpers"),
    [
        ({}, GREEDY),
        ({"temperature": 0.7}, WarperParams(temperature=0.7)),
        ({"temperature": 1.5}, WarperParams(temperature=1.5)),
        ({"top_k": 1}, GREEDY),
        ({"top_k": 1, "temperature": 1.0, "top_p": 0.5}, GREEDY),
        ({"top_k": 5}, WarperParams(top_k=5)),
        ({"top_p": 0.9}, WarperParams(top_p=0.9)),
        ({"top_p": 1.0}, WarperParams()),
        (
            {"temperature": 0.5, "top_k": 5, "top_p": 0.9},
            WarperParams(temperature=0.5, top_k=5, top_p=0.9),
        ),
    ],
)
def test_only_what_is_at_zero_is_not_used_and_the_best_token_is_taken_where_all_is(fields, warpers):
    assert job(**fields).warpers == warpers


def test_candidates_are_made_and_the_best_of_them_kept():
    made = job(n=2, best_of=5)

    assert (made.n_sequences, made.n_kept) == (5, 2)


def test_a_best_of_one_is_off():
    made = job(n=1, best_of=1, stream=True)

    assert (made.n_sequences, made.n_kept) == (1, None)


def test_penalties_and_biases_reach_the_job():
    made = job(
        logit_bias={"1": 400.5, "17": -3},
        presence_penalty=-10,
        frequency_penalty=0.2,
        sequence_penalty=0.3,
        sequence_penalty_min_length=4,
        use_multiplicative_frequency_penalty=True,
        use_multiplicative_sequence_penalty=True,
        repetition_penalties_include_prompt=True,
        repetition_penalties_include_completion=False,
        penalty_bias="never mind",
        penalty_exceptions=[" the"],
        stop_sequences=["\n"],
    )

    assert made.adjustments == AdjustmentParams(
        logit_bias=((1, 400.5), (17, -3.0)),
        presence_penalty=-10.0,
        frequency_penalty=0.2,
        sequence_penalty=0.3,
        sequence_min_length=4,
        is_frequency_multiplicative=True,
        is_sequence_multiplicative=True,
        counts_generated=False,
        counts_prompt=True,
        counted_text="never mind",
        exceptions=(" the", "\n"),
    )


def test_stop_sequences_are_no_exceptions_where_that_is_switched_off():
    made = job(stop_sequences=["\n"], penalty_exceptions_include_stop_sequences=False)

    assert made.adjustments.exceptions == ()
    assert made.stops == StopParams(strings=("\n",), takes_earliest=True, ends_each=True)


def test_what_may_and_may_not_come_reaches_the_job():
    made = job(
        minimum_tokens=3,
        maximum_tokens=3,
        completion_bias_inclusion=[" yes", " no"],
        completion_bias_inclusion_first_token_only=True,
        completion_bias_exclusion=[" maybe"],
        completion_bias_exclusion_first_token_only=True,
    )

    assert made.max_new_tokens == 3
    assert made.constraints == ConstraintParams(
        can_stop_early=True,
        can_be_empty=True,
        ends_where_stuck=True,
        min_new_tokens=3,
        inclusions=(" yes", " no"),
        is_inclusion_first_only=True,
        exclusions=(" maybe",),
        is_exclusion_first_only=True,
    )


def test_a_prompt_is_optimised_and_told_where_that_changes_it():
    prompt = Prompt([Text(" Hello ", [TextControl(0, 3, 0.5)]), Text.from_text("world! ")])

    made = job(prompt=prompt.to_json(), echo=True)

    control = ReadTextControl(start=0, length=2, factor=0.5)
    text = TextItem(text="Hello world!", controls=(control,))
    assert made.prompt == ItemsPrompt(items=(text,), echo=True, is_changed=True)


def test_a_prompt_that_optimising_does_not_change_is_not_told():
    assert not job(prompt=[{"type": "token_ids", "data": [1, 2]}]).prompt.is_changed


def test_a_prompt_is_read_as_it_is_where_optimising_is_switched_off():
    made = job(prompt=" Hello ", disable_optimizations=True)

    assert made.prompt == ItemsPrompt(items=(TextItem(text=" Hello "),))


def test_a_prompt_may_be_empty():
    assert job(prompt="").prompt.items == (TextItem(text=""),)
    assert job(prompt=[]).prompt.items == ()


def test_attention_controls_act_as_asked():
    made = job(contextual_control_threshold=0.5, control_log_additive=False)

    assert made.prompt.attention == AttentionParams(is_log_additive=False, threshold=0.5)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, set()),
        ({"raw_completion": True}, {"raw_completion"}),
        ({"tokens": True}, {"raw_completion", "completion_tokens"}),
        ({"log_probs": 0}, {"raw_completion", "log_probs"}),
        ({"log_probs": 3, "tokens": True}, {"raw_completion", "log_probs", "completion_tokens"}),
    ],
)
def test_the_job_says_which_fields_its_answer_is_to_have(fields, told):
    assert set(job(**fields).answer_fields) == told


def test_a_job_travels_whole():
    made = job(prompt=[{"type": "token_ids", "data": [1, 2]}], tokens=True, echo=True)

    assert decode_job(encode(made)) == made
    assert made.prompt.items == (IdsItem(ids=(1, 2)),)


def test_a_job_is_no_stream():
    with pytest.raises(InvalidParams, match=r"stream: must be false in a job"):
        load_completion({**REQUEST, "stream": True}, SETTINGS)


@pytest.mark.parametrize(
    ("canonical", "own"),
    [
        ("sequences_count", "n"),
        ("n_kept", "best_of"),
        ("generated_tokens_count", "maximum_tokens"),
        ("stop_strings", "stop_sequences"),
        ("prompt", "prompt"),
    ],
)
def test_errors_about_a_job_name_the_requests_own_fields(canonical, own):
    assert renamed(InvalidParams(canonical, "is odd")).field == own
