from __future__ import annotations

import base64

import pytest

from api.aleph_alpha.reading_adapter import (
    load_batch,
    load_embedding,
    load_evaluation,
    load_explanation,
    load_semantic,
)
from neodim_sampling.prompt_items import (
    AttentionParams,
    IdsItem,
    ItemsPrompt,
    TextControl,
    TextItem,
)
from workers.contract.errors import InvalidParams, MissingCapability
from workers.contract.reading_job import (
    EmbeddingJob,
    EvaluationJob,
    ExplanationJob,
    Granularity,
    Pooling,
    Postprocessing,
)
from workers.contract.settings import Settings

PLAIN, SEMANTIC = Settings(), Settings(semantic_embeddings=True)
EVALUATION = {"model": "tiny", "prompt": "An apple", "completion_expected": " a day"}
EXPLANATION = {"model": "tiny", "prompt": "An apple", "target": " a day"}
EMBEDDING = {"model": "tiny", "prompt": "An apple", "layers": [0, -1], "pooling": ["mean"]}
SEMANTICS = {"model": "tiny", "prompt": "An apple", "representation": "symmetric"}
BATCH = {"model": "tiny", "prompts": ["a", "b"], "representation": "symmetric"}
LOADS = [
    (load_evaluation, EVALUATION),
    (load_explanation, EXPLANATION),
    (load_embedding, EMBEDDING),
    (load_semantic, SEMANTICS),
    (load_batch, BATCH),
]


def prompt(*texts, **attention):
    items = tuple(TextItem(text=each) for each in texts)
    return ItemsPrompt(items=items, attention=AttentionParams(**attention))


def evaluation(**fields):
    return load_evaluation({**EVALUATION, **fields}, PLAIN)


def explanation(**fields):
    return load_explanation({**EXPLANATION, **fields}, PLAIN)


def embedding(**fields):
    return load_embedding({**EMBEDDING, **fields}, PLAIN)


def refusal(call, **fields):
    with pytest.raises(InvalidParams) as caught:
        call(**fields)
    return str(caught.value)


def test_an_evaluation_has_prompt_and_text():
    assert evaluation() == EvaluationJob(model="tiny", prompt=prompt("An apple"), expected=" a day")


@pytest.mark.parametrize(("load", "body"), LOADS)
def test_null_means_default_and_unknown_fields_mean_nothing(load, body):
    silent = {
        "contextual_control_threshold": None,
        "control_log_additive": None,
        "control_factor": None,
        "control_token_overlap": None,
        "prompt_granularity": None,
        "target_granularity": None,
        "postprocessing": None,
        "normalize": None,
        "tokens": None,
        "type": None,
        "compress_to_size": None,
        "hosting": "aleph-alpha",
        "tags": ["a"],
        "of_tomorrow": 7,
    }

    assert load({**silent, **body}, SEMANTIC) == load(body, SEMANTIC)


@pytest.mark.parametrize(
    ("load", "body", "missing"), [(load, body, name) for load, body in LOADS for name in body]
)
def test_a_field_that_is_needed_is_named_where_it_is_missing_or_null(load, body, missing):
    for given in ({**body, missing: None}, {n: v for n, v in body.items() if n != missing}):
        with pytest.raises(InvalidParams, match=f"^{missing}: is required"):
            load(given, SEMANTIC)


@pytest.mark.parametrize(("load", "body"), LOADS)
def test_attention_is_controlled_as_asked(load, body):
    asked = {"control_log_additive": False, "contextual_control_threshold": 0.5}

    job = load({**body, **asked}, SEMANTIC)

    read = job.prompts[0] if isinstance(job, EmbeddingJob) else job.prompt
    assert read.attention == AttentionParams(is_log_additive=False, threshold=0.5)


@pytest.mark.parametrize(("load", "body"), LOADS[:3])
def test_prompts_are_read_as_they_are(load, body):
    items = [
        {"type": "text", "data": "  a ", "controls": [{"start": 0, "length": 2, "factor": 0.5}]},
        {"type": "text", "data": " b  "},
        {"type": "token_ids", "data": [1, 2]},
    ]

    job = load({**body, "prompt": items}, PLAIN)

    read = job.prompts[0] if isinstance(job, EmbeddingJob) else job.prompt
    assert read.items == (
        TextItem(text="  a ", controls=(TextControl(start=0, length=2, factor=0.5),)),
        TextItem(text=" b  "),
        IdsItem(ids=(1, 2)),
    )
    assert not read.is_changed


def test_a_picture_that_is_none_is_refused():
    items = [{"type": "image", "data": base64.b64encode(b"no picture").decode()}]

    assert refusal(evaluation, prompt=items).startswith("prompt: item 0: ")


@pytest.mark.parametrize(
    ("call", "fields", "problem"),
    [
        (evaluation, {"completion_expected": ""}, "completion_expected: must not be empty"),
        (evaluation, {"completion_expected": 1}, "completion_expected: must be a string, not 1"),
        (
            evaluation,
            {"contextual_control_threshold": 2},
            "contextual_control_threshold: must be at most 1, not 2",
        ),
        (explanation, {"target": ""}, "target: must not be empty"),
        (explanation, {"control_factor": -0.1}, "control_factor: must be at least 0, not -0.1"),
        (
            explanation,
            {"postprocessing": "cube"},
            'postprocessing: must be one of "none", "absolute", "square", not "cube"',
        ),
        (
            explanation,
            {"target_granularity": "word"},
            'target_granularity: must be one of "complete", "token", not "word"',
        ),
        (
            explanation,
            {"prompt_granularity": "letter"},
            'prompt_granularity: type: must be one of "token", "word", "sentence", "paragraph", '
            '"custom", not "letter"',
        ),
        (
            explanation,
            {"prompt_granularity": 3},
            "prompt_granularity: must be an object, not 3",
        ),
        (
            explanation,
            {"prompt_granularity": {"type": "custom"}},
            "prompt_granularity: needs a non-empty delimiter with the type custom, and none with "
            "others",
        ),
        (
            explanation,
            {"prompt_granularity": {"type": "word", "delimiter": ","}},
            "prompt_granularity: needs a non-empty delimiter with the type custom, and none with "
            "others",
        ),
        (
            embedding,
            {"pooling": ["mean", "min"]},
            'pooling: entry 1 must be one of "mean", "weighted_mean", "max", "last_token", '
            '"abs_max", not "min"',
        ),
        (embedding, {"pooling": []}, "pooling: must be a list of 1 to 5 entries, not 0 entries"),
        (embedding, {"pooling": "mean"}, 'pooling: must be a list of 1 to 5 entries, not "mean"'),
        (embedding, {"layers": [0.5]}, "layers: entry 0 must be an integer, not 0.5"),
        (embedding, {"layers": [None]}, "layers: entry 0 must not be null"),
        (embedding, {"layers": []}, "layers: must be a list of 1 to 1000 entries, not 0 entries"),
        (embedding, {"tokens": 1}, "tokens: must be true or false, not 1"),
    ],
)
def test_what_cannot_be_done_is_refused(call, fields, problem):
    assert refusal(call, **fields) == problem


def test_an_explanation_scales_by_a_tenth_as_a_whole_unless_it_says_otherwise():
    assert explanation() == ExplanationJob(
        model="tiny", prompt=prompt("An apple"), target=" a day", factor=0.1
    )


def test_an_explanation_says_everything_otherwise():
    job = explanation(
        control_factor=0,
        control_token_overlap="complete",
        prompt_granularity={"type": "sentence"},
        target_granularity="token",
        postprocessing="square",
        normalize=True,
    )

    assert job == ExplanationJob(
        model="tiny",
        prompt=prompt("An apple"),
        target=" a day",
        factor=0.0,
        is_complete=True,
        granularity=Granularity.SENTENCE,
        is_by_token=True,
        postprocessing=Postprocessing.SQUARE,
        is_normalised=True,
    )


@pytest.mark.parametrize(
    ("given", "granularity", "delimiter"),
    [
        ("word", Granularity.WORD, ""),
        ({"type": "token"}, Granularity.TOKEN, ""),
        ({"type": "paragraph", "delimiter": None}, Granularity.PARAGRAPH, ""),
        ({"type": "custom", "delimiter": "###"}, Granularity.CUSTOM, "###"),
        ({"type": None}, None, ""),
        ({}, None, ""),
        (None, None, ""),
    ],
)
def test_a_granularity_is_an_object_or_a_bare_type(given, granularity, delimiter):
    job = explanation(prompt_granularity=given)

    assert (job.granularity, job.delimiter) == (granularity, delimiter)


def test_an_embedding_has_layers_and_poolings():
    job = embedding(pooling=["mean", "abs_max"], tokens=True, normalize=True)

    assert job == EmbeddingJob(
        model="tiny",
        prompts=(prompt("An apple"),),
        layers=(0, -1),
        pooling=(Pooling.MEAN, Pooling.ABS_MAX),
        is_normalised=True,
        tells_tokens=True,
    )


@pytest.mark.parametrize(
    ("representation", "texts"),
    [
        ("symmetric", ("An apple",)),
        ("query", ("[", "An apple", "]")),
        ("document", ("{", "An apple", "}")),
    ],
)
def test_a_semantic_embedding_puts_its_brackets_around_the_text(representation, texts):
    body = {**SEMANTICS, "representation": representation, "normalize": True}

    assert load_semantic(body, SEMANTIC) == EmbeddingJob(
        model="tiny",
        prompts=(prompt(*texts),),
        layers=(-1,),
        pooling=(Pooling.WEIGHTED_MEAN,),
        is_normalised=True,
    )


def test_each_text_of_a_batch_has_its_brackets():
    job = load_batch({**BATCH, "representation": "query"}, SEMANTIC)

    assert job.prompts == (prompt("[", "a", "]"), prompt("[", "b", "]"))


def test_a_batch_has_at_most_a_hundred_prompts():
    with pytest.raises(InvalidParams) as caught:
        load_batch({**BATCH, "prompts": ["a"] * 101}, SEMANTIC)

    assert str(caught.value) == "prompts: must be a list of 1 to 100 entries, not 101 entries"


def test_an_entry_of_a_batch_that_is_no_prompt_is_named():
    with pytest.raises(InvalidParams) as caught:
        load_batch({**BATCH, "prompts": ["a", 7]}, SEMANTIC)

    assert str(caught.value) == "prompts: entry 1 must be a string or a list of items, not 7"


@pytest.mark.parametrize(("load", "body"), LOADS[3:])
def test_a_model_that_was_not_trained_for_it_has_no_semantic_embeddings(load, body):
    with pytest.raises(MissingCapability, match="--semantic-embeddings true"):
        load(body, PLAIN)


@pytest.mark.parametrize(("load", "body"), LOADS[3:])
def test_vectors_are_not_compressed(load, body):
    with pytest.raises(MissingCapability, match="compress_to_size"):
        load({**body, "compress_to_size": 128}, SEMANTIC)
