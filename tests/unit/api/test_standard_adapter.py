from __future__ import annotations

import pytest

from api.rejections import UnsupportedParameter
from api.standard.adapter import (
    UNSUPPORTED,
    chat_job,
    completion_jobs,
    load_chat,
    load_completion,
    read_chat,
    read_completion,
    renamed,
    with_model,
)
from api.standard.schema import ChatSchema, CompletionSchema
from neodim_sampling.parameters import (
    ConstraintParams,
    StopParams,
    WarperParams,
)
from neodim_sampling.penalty_parameters import (
    AdjustmentParams,
    IncludeGenerated,
    RepetitionPenaltyParams,
)
from neodim_sampling.prompts import ChatMessage, PlainPrompt
from workers.contract.errors import InvalidParams, MissingCapability
from workers.contract.job_body import decode_job, encode
from workers.contract.settings import Settings
from workers.contract.text_job import SEED_LIMIT

SETTINGS = Settings(model_name="tiny")
HELLO = [{"role": "user", "content": "Hello"}]
CHAT = {"model": "tiny", "messages": HELLO}
COMPLETION = {"model": "tiny", "prompt": "Hello"}

INTEGERS = (
    "n",
    "seed",
    "top_k",
    "repetition_penalty_range",
    "no_repeat_ngram_size",
    "max_tokens",
    "min_tokens",
)
NUMBERS = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "min_p",
    "typical",
    "tfs",
    "top_a",
    "repetition_penalty",
    "repetition_penalty_slope",
)
FLAGS = ("stream", "repetition_penalty_truncate_to_input")
STRINGS = ("model", "user", "repetition_penalty_prompt")
LISTS = ("warpers_order", "words_whitelist", "words_blacklist", "words_blacklist_at_start")
OTHERS = ("stream_options", "stop", "logit_bias", "repetition_penalty_include_generated")
CHAT_ONLY = (
    "messages",
    "max_completion_tokens",
    "maximum_tokens",
    "logprobs",
    "top_logprobs",
    "steering_concepts",
    "hosting",
    "tags",
)
COMPLETION_ONLY = ("prompt", "echo", "logprobs", "best_of")

WRONG = {
    **dict.fromkeys(
        (*INTEGERS, "max_completion_tokens", "maximum_tokens", "top_logprobs"),
        ("8", 1.5, True, [8]),
    ),
    **dict.fromkeys(NUMBERS, ("0.5", True, [0.5], 10**400)),
    **dict.fromkeys((*FLAGS, "logprobs"), ("yes", 0, 1, [])),
    **dict.fromkeys(STRINGS, (5, True, ["x"])),
    **dict.fromkeys((*LISTS, "steering_concepts", "tags"), ("x", 5, [1], ["x", None])),
    "hosting": (5, ["x"]),
    "stream_options": ("x", [], True, {"include_usage": 1}, {"x": 1}),
    "repetition_penalty_include_generated": ("Slide", 5, ["slide"]),
    "stop": (5, [5], ["x", None], {}, "", ["x", ""], ["x"] * 17),
    "logit_bias": (
        [1],
        "x",
        {"abc": 1},
        {"-1": 1},
        {"1.5": 1},
        {"": 1},
        {"007": 1},
        {"\u0661": 1},
        {"9" * 10: 1},
        {"3": "x"},
        {"3": None},
        {"3": True},
        {"3": 100.5},
        {"3": -101},
    ),
}
OUT_OF_RANGE = {
    "n": (0, -1, 257),
    "seed": (-1, SEED_LIMIT),
    "top_k": (-1,),
    "repetition_penalty_range": (-1,),
    "no_repeat_ngram_size": (-1,),
    "max_tokens": (-1, 2**31),
    "min_tokens": (-1,),
    "max_completion_tokens": (-1, 0),
    "maximum_tokens": (-1, 0),
    "temperature": (-0.1,),
    "top_p": (-0.1, 1.1),
    "presence_penalty": (-2.5, 2.5),
    "frequency_penalty": (-2.5, 2.5),
    "min_p": (-0.1, 2),
    "typical": (-0.5, 1.5),
    "tfs": (-0.5, 1.5),
    "top_a": (-0.5, 2),
    "repetition_penalty": (-1,),
    "repetition_penalty_slope": (-1,),
    "user": ("x" * 513,),
    "warpers_order": (["nope"], ["*"] * 101),
    "words_whitelist": ([],),
    "words_blacklist": ([" "],),
}


def chat(**fields):
    return load_chat({**CHAT, **fields}, SETTINGS)


def completion(**fields):
    return load_completion({**COMPLETION, **fields}, SETTINGS)


def completions(**fields):
    return completion_jobs(read_completion({**COMPLETION, **fields}))


def refusal(load, **fields):
    with pytest.raises(InvalidParams) as caught:
        load(**fields)
    return caught.value


def pairs(values):
    return [(name, value) for name, some in values.items() for value in some]


def short(value):
    return f"{value!r:.30}"


@pytest.mark.parametrize(("name", "value"), pairs(WRONG) + pairs(OUT_OF_RANGE), ids=short)
def test_a_bad_value_in_a_chat_is_refused_by_its_field(name, value):
    error = refusal(chat, **{name: value})

    assert error.field == name
    assert str(error).startswith(f"{name}: ")
    assert len(str(error)) < 300


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 1.5) for name in INTEGERS),
        *((name, "x") for name in (*NUMBERS, *FLAGS, "echo", "best_of", "logprobs")),
        ("logprobs", -1),
        ("logprobs", 21),
        ("logprobs", True),
        ("best_of", 0),
        ("best_of", 257),
        ("max_tokens", -1),
        ("n", 0),
        ("n", 257),
    ],
    ids=short,
)
def test_a_bad_value_in_a_completion_is_refused_by_its_field(name, value):
    assert refusal(completion, **{name: value}).field == name


def test_the_lists_of_this_test_have_every_field():
    common = {*INTEGERS, *NUMBERS, *FLAGS, *STRINGS, *LISTS, *OTHERS}

    assert set(ChatSchema().fields) == {*common, *CHAT_ONLY}
    assert set(CompletionSchema().fields) == {*common, *COMPLETION_ONLY}


@pytest.mark.parametrize("name", sorted(set(ChatSchema().fields) - set(CHAT)))
def test_null_is_the_default_in_a_chat(name):
    assert read_chat({**CHAT, name: None}) == read_chat(CHAT)


@pytest.mark.parametrize("name", sorted(set(CompletionSchema().fields) - set(COMPLETION)))
def test_null_is_the_default_in_a_completion(name):
    assert read_completion({**COMPLETION, name: None}) == read_completion(COMPLETION)


@pytest.mark.parametrize("name", ["messages", "prompt"])
@pytest.mark.parametrize("given", [{}, {"messages": None, "prompt": None}])
def test_what_to_go_on_with_may_be_neither_missing_nor_null(name, given):
    read = read_chat if name == "messages" else read_completion

    with pytest.raises(InvalidParams, match=f"^{name}: is required"):
        read({"model": "tiny", **given} if not given else {"model": "tiny", name: None})


@pytest.mark.parametrize("name", UNSUPPORTED)
@pytest.mark.parametrize("load", [chat, completion])
def test_what_cannot_be_done_yet_is_refused_with_a_code_of_its_own(load, name):
    error = refusal(load, **{name: [{"type": "function"}]})

    assert isinstance(error, UnsupportedParameter)
    assert (error.code, error.field) == ("unsupported_parameter", name)


def test_what_cannot_be_done_yet_may_be_null():
    assert chat(**dict.fromkeys(UNSUPPORTED), seed=1) == chat(seed=1)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in UNSUPPORTED.items() for value in values]
)
def test_what_asks_for_nothing_is_taken(name, value):
    assert chat(**{name: value}, seed=1) == chat(seed=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("response_format", {}),
        ("response_format", "text"),
        ("response_format", {"type": "json_object"}),
        ("response_format", {"type": "text", "x": 1}),
        ("store", 0),
        ("store", True),
        ("tools", {}),
        ("tool_choice", "required"),
        ("metadata", {"a": "b"}),
        ("parallel_tool_calls", 1),
    ],
)
def test_what_asks_for_something_that_is_not_there_is_refused(name, value):
    assert isinstance(refusal(chat, **{name: value}), UnsupportedParameter)


def test_the_role_developer_is_that_of_the_system():
    developer, system = (
        chat(messages=[{"role": role, "content": "Be kind."}], seed=1)
        for role in ("developer", "system")
    )

    assert developer == system


def test_without_a_model_the_services_own_is_meant():
    settings = Settings(model_name="own")

    assert with_model({"a": 1}, settings) == {"a": 1, "model": "own"}
    assert with_model({"model": None}, settings) == {"model": "own"}
    assert with_model({"model": 5}, settings) == {"model": 5}


@pytest.mark.parametrize(
    ("load", "name"), [(chat, "echo"), (chat, "prompt"), (completion, "top_logprobs"), (chat, "x")]
)
def test_a_field_that_the_other_endpoint_or_none_has_is_refused(load, name):
    assert str(refusal(load, **{name: 1})) == f"{name}: is not a known field"


def test_nothing_asked_for_is_sampling_from_the_models_own_scores():
    job = chat(seed=1)

    assert (job.model, job.seed, job.n_sequences, job.n_kept) == ("tiny", 1, 1, None)
    assert (job.max_new_tokens, job.log_probs, job.user) == (None, None, "")
    assert job.warpers == WarperParams(temperature=1.0)
    assert job.penalty is None
    assert job.adjustments == AdjustmentParams()
    assert job.stops is None
    assert job.constraints == ConstraintParams(can_stop_early=True, can_be_empty=True)


@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("top_p", 1),
        ("top_k", 0),
        ("min_p", 0),
        ("typical", 0),
        ("typical", 1),
        ("tfs", 0),
        ("tfs", 1),
        ("top_a", 0),
        ("presence_penalty", 0),
        ("frequency_penalty", 0),
        ("logit_bias", {}),
        ("stop", []),
        ("repetition_penalty", 0),
        ("repetition_penalty_range", 0),
        ("repetition_penalty_slope", 0),
        ("no_repeat_ngram_size", 0),
        ("warpers_order", []),
        ("words_blacklist", []),
        ("words_blacklist_at_start", []),
        ("logprobs", False),
        ("temperature", 1),
    ],
)
def test_an_off_value_is_the_same_as_nothing(name, off):
    assert chat(**{name: off}, seed=1) == chat(seed=1)


def test_everything_arrives_in_the_job():
    job = chat(
        n=3,
        seed=SEED_LIMIT - 1,
        user="me",
        max_tokens=9,
        temperature=0.5,
        top_k=4,
        top_p=0.6,
        min_p=0.1,
        typical=0.2,
        tfs=0.3,
        top_a=0.4,
        warpers_order=["tfs", "*", "top_k"],
        presence_penalty=-1.5,
        frequency_penalty=2,
        logit_bias={"7": -3, "0": 100},
        repetition_penalty=1.5,
        repetition_penalty_range=7,
        repetition_penalty_slope=2,
        repetition_penalty_include_generated="expand",
        repetition_penalty_truncate_to_input=True,
        repetition_penalty_prompt="q",
        words_whitelist=["w"],
        words_blacklist=["b"],
        words_blacklist_at_start=["s"],
        no_repeat_ngram_size=3,
        min_tokens=9,
        stop=["END", "\n"],
        logprobs=True,
        top_logprobs=5,
    )

    assert (job.n_sequences, job.seed, job.user, job.max_new_tokens) == (3, SEED_LIMIT - 1, "me", 9)
    assert job.log_probs == 5
    assert job.warpers == WarperParams(
        temperature=0.5,
        top_k=4,
        top_p=0.6,
        min_p=0.1,
        typical=0.2,
        tfs=0.3,
        top_a=0.4,
        order=("tfs", "*", "top_k"),
    )
    assert job.adjustments == AdjustmentParams(
        presence_penalty=-1.5, frequency_penalty=2.0, logit_bias=((7, -3.0), (0, 100.0))
    )
    assert job.penalty == RepetitionPenaltyParams(
        penalty=1.5,
        range_tokens=7,
        slope=2.0,
        include_preamble=True,
        include_generated=IncludeGenerated.EXPAND,
        truncate_to_input=True,
        prompt="q",
    )
    assert job.constraints == ConstraintParams(
        words_whitelist=("w",),
        words_blacklist=("b",),
        words_blacklist_at_start=("s",),
        no_repeat_ngram_size=3,
        min_new_tokens=9,
        can_stop_early=True,
        can_be_empty=True,
    )
    assert job.stops == StopParams(strings=("END", "\n"), takes_earliest=True, ends_each=True)
    assert decode_job(encode(job)) == job


def test_a_temperature_of_zero_takes_the_best_token_whatever_else_is_asked_for():
    job = chat(temperature=0, top_k=40, top_p=0.5, tfs=0.5, warpers_order=["tfs", "*"])

    assert job.warpers == WarperParams(top_k=1)


def test_more_tokens_at_least_than_at_most_are_refused_by_the_requests_own_name():
    problem = refusal(completion, min_tokens=17)

    assert problem.field == "min_tokens"
    assert "at most the 16 tokens to generate" in problem.problem
    assert chat(min_tokens=17).constraints.min_new_tokens == 17


def test_a_nucleus_of_nothing_is_the_best_token():
    assert chat(top_p=0, top_k=40).warpers == WarperParams(temperature=1.0, top_k=1)


def test_a_bias_of_minus_100_bans_its_token_and_a_larger_one_does_not():
    job = chat(logit_bias={"5": -100, "6": -99.5, "8": -100.0})

    assert job.constraints.banned_ids == (5, 8)
    assert job.adjustments.logit_bias == ((6, -99.5),)


def test_a_repetition_penalty_that_is_off_does_not_hide_a_bad_value_beside_it():
    with pytest.raises(InvalidParams, match=r"^repetition_penalty_slope: "):
        chat(repetition_penalty=0, repetition_penalty_slope=-1)


def test_one_stop_string_is_a_list_of_one_and_sixteen_are_taken():
    many = [f"stop {n}" for n in range(16)]

    assert chat(stop="x").stops.strings == ("x",)
    assert chat(stop=many).stops.strings == tuple(many)


def test_a_seed_is_drawn_for_each_request_that_names_none():
    seeds = {load().seed for _ in range(10) for load in (chat, completion)}

    assert len(seeds) == 20
    assert all(0 <= seed < SEED_LIMIT for seed in seeds)


def test_either_name_says_how_long_a_chat_may_get():
    assert chat(max_tokens=5).max_new_tokens == 5
    assert chat(max_completion_tokens=6).max_new_tokens == 6
    assert chat(maximum_tokens=8).max_new_tokens == 8
    assert chat(max_tokens=7, max_completion_tokens=7, maximum_tokens=7).max_new_tokens == 7


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"max_tokens": 5, "max_completion_tokens": 6},
            "max_completion_tokens: must not differ from max_tokens",
        ),
        (
            {"max_tokens": 5, "maximum_tokens": 6},
            "maximum_tokens: must not differ from max_tokens",
        ),
        (
            {"max_tokens": 5, "max_completion_tokens": 5, "maximum_tokens": 6},
            "maximum_tokens: must not differ from max_completion_tokens",
        ),
    ],
)
def test_two_lengths_that_differ_are_refused(fields, problem):
    assert str(refusal(chat, **fields)) == problem


def test_what_other_clients_send_along_changes_nothing():
    extras = {"hosting": "aleph-alpha", "tags": ["a"], "steering_concepts": []}

    assert chat(seed=1, **extras) == chat(seed=1)


def test_models_are_not_steered():
    with pytest.raises(MissingCapability, match="steering_concepts"):
        chat(steering_concepts=["0123"])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"logprobs": False}, None),
        ({"logprobs": True}, 0),
        ({"logprobs": True, "top_logprobs": 0}, 0),
        ({"logprobs": True, "top_logprobs": 20}, 20),
    ],
)
def test_a_chat_tells_as_many_alternatives_as_it_is_asked_for(fields, expected):
    assert chat(**fields).log_probs == expected


@pytest.mark.parametrize("fields", [{}, {"logprobs": False}])
def test_alternatives_without_log_probabilities_are_refused(fields):
    error = refusal(chat, top_logprobs=2, **fields)

    assert str(error) == "top_logprobs: needs logprobs to be true"


def test_more_than_twenty_alternatives_are_refused():
    assert refusal(chat, logprobs=True, top_logprobs=21).field == "top_logprobs"


@pytest.mark.parametrize("load", [chat, completion])
def test_stream_options_without_a_stream_are_refused(load):
    error = refusal(load, stream_options={"include_usage": True})

    assert str(error) == "stream_options: needs stream to be true"


@pytest.mark.parametrize(("given", "expected"), [({}, False), ({"include_usage": True}, True)])
def test_stream_options_say_whether_the_usage_comes_once_more(given, expected):
    assert (
        read_chat({**CHAT, "stream": True, "stream_options": given})["stream_options"] is expected
    )


@pytest.mark.parametrize("load", [chat, completion])
def test_a_job_is_no_stream(load):
    assert refusal(load, stream=True).field == "stream"


def test_a_job_has_one_prompt():
    assert refusal(completion, prompt=["a", "b"]).field == "prompt"
    assert completion(prompt=["a"]).prompt == PlainPrompt(text="a")


CONVERSATIONS = {
    "null content": [{"role": "user", "content": None}],
    "no content": [{"role": "user"}],
    "a number for content": [{"role": "user", "content": 5}],
    "no role": [{"content": "x"}],
    "an unknown role": [{"role": "robot", "content": "x"}],
    "a role that is no string": [{"role": ["user"], "content": "x"}],
    "no object": ["x"],
    "null": [None],
    "an unknown field": [{"role": "user", "content": "x", "audio": {}}],
    "a name that is no string": [{"role": "user", "content": "x", "name": 5}],
    "a part that is no object": [{"role": "user", "content": ["x"]}],
    "a picture": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
    "a part without a text": [{"role": "user", "content": [{"type": "text"}]}],
    "a part with more than a text": [
        {"role": "user", "content": [{"type": "text", "text": "x", "y": 1}]}
    ],
    "a part whose text is no string": [{"role": "user", "content": [{"type": "text", "text": 5}]}],
}


@pytest.mark.parametrize("messages", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_bad_message_is_refused_by_its_place(messages):
    error = refusal(chat, messages=[*HELLO, *messages])

    assert str(error).startswith("messages: entry 1")
    assert len(str(error)) < 200


@pytest.mark.parametrize("messages", ["x", 5, {}, [], True, {"role": "user", "content": "x"}])
def test_what_is_no_list_of_messages_is_refused(messages):
    assert str(refusal(chat, messages=messages)).startswith("messages: must be a non-empty list")


def test_messages_of_every_role_are_read():
    job = chat(
        messages=[
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u", "name": "Ann"},
            {"role": "assistant", "content": "a", "name": None},
            {"role": "tool", "content": "t", "tool_call_id": "7"},
        ]
    )

    assert job.prompt.messages == (
        ChatMessage(role="system", content="s"),
        ChatMessage(role="user", content="u", name="Ann"),
        ChatMessage(role="assistant", content="a"),
        ChatMessage(role="tool", content="t", tool_call_id="7"),
    )


@pytest.mark.parametrize(("texts", "expected"), [((), ""), (("a",), "a"), (("a ", "b"), "a b")])
def test_text_parts_are_one_text(texts, expected):
    parts = [{"type": "text", "text": each} for each in texts]

    job = chat(messages=[{"role": "user", "content": parts}])

    assert job.prompt.messages == (ChatMessage(role="user", content=expected),)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("a", [PlainPrompt(text="a")]),
        ("", [PlainPrompt(text="")]),
        (["a", "b"], [PlainPrompt(text="a"), PlainPrompt(text="b")]),
        ([5, 6.0], [PlainPrompt(ids=(5, 6))]),
        ([[5, 6], [0]], [PlainPrompt(ids=(5, 6)), PlainPrompt(ids=(0,))]),
    ],
)
def test_a_prompt_is_text_or_ids_and_each_is_a_job(prompt, expected):
    assert [job.prompt for job in completions(prompt=prompt)] == expected


@pytest.mark.parametrize(
    "prompt",
    [5, {}, [], True, [1, "a"], ["a", 1], [-1], [1.5], [True], [2**31], [[]], [[1], []], [["a"]]],
    ids=short,
)
def test_what_is_no_prompt_is_refused(prompt):
    assert refusal(completions, prompt=prompt).field == "prompt"


def test_a_thousand_prompts_are_taken_and_no_more():
    assert len(completions(prompt=["x"] * 1000)) == 1000
    assert refusal(completions, prompt=["x"] * 1001).field == "prompt"
    assert len(completions(prompt=[7] * 1001)) == 1


def test_prompts_of_one_request_share_its_seed():
    drawn = {job.seed for job in completions(prompt=["a", "b"])}
    given = {job.seed for job in completions(prompt=["a", "b"], seed=5)}

    assert len(drawn) == 1
    assert given == {5}


def test_a_completion_has_sixteen_tokens_unless_it_says_otherwise():
    assert completion().max_new_tokens == 16
    assert completion(max_tokens=0).max_new_tokens == 0


def test_echo_and_log_probabilities_reach_the_job():
    job = completion(echo=True, logprobs=3)

    assert (job.prompt.echo, job.log_probs) == (True, 3)
    assert (completion().prompt.echo, completion().log_probs) == (False, None)
    assert completion(logprobs=0).log_probs == 0


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"n": 2}, (2, None)),
        ({"n": 2, "best_of": 2}, (2, None)),
        ({"n": 2, "best_of": 5}, (5, 2)),
        ({"best_of": 3}, (3, 1)),
        ({"best_of": 1}, (1, None)),
    ],
)
def test_best_of_makes_more_texts_than_it_keeps(fields, expected):
    job = completion(**fields)

    assert (job.n_sequences, job.n_kept) == expected


def test_fewer_candidates_than_texts_are_refused():
    assert str(refusal(completion, n=3, best_of=2)) == "best_of: must be at least n, which is 3"


def test_a_stream_cannot_choose_the_best_or_echo():
    assert refusal(completions, stream=True, best_of=2).field == "best_of"
    assert refusal(completions, stream=True, echo=True).field == "echo"
    assert completions(stream=True, best_of=2, n=2)[0].n_sequences == 2


@pytest.mark.parametrize(
    ("canonical", "own"),
    [
        ("sequences_count", "n"),
        ("generated_tokens_count", "max_tokens"),
        ("stop_strings", "stop"),
        ("log_probs", "logprobs"),
        ("n_kept", "best_of"),
        ("minimum_tokens", "min_tokens"),
        ("temperature", "temperature"),
    ],
)
def test_errors_about_the_canonical_job_name_the_requests_own_field(canonical, own):
    error = renamed(InvalidParams(canonical, "is wrong"))

    assert (error.field, str(error)) == (own, f"{own}: is wrong")


def test_a_chat_is_one_job_of_its_fields():
    assert chat_job(read_chat({**CHAT, "seed": 3})) == chat(seed=3)
