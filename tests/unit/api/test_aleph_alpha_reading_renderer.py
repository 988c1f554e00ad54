"""The answers that the protocol's own service was recorded to give are the examples here."""

from __future__ import annotations

from dataclasses import replace

from standard_answers import record

from api.aleph_alpha.reading_renderer import (
    render_batch,
    render_embedding,
    render_evaluation,
    render_explanation,
    render_semantic,
)
from workers.contract.reading_job import (
    AreaScore,
    Embedding,
    EmbeddingResult,
    EvaluationResult,
    Explanation,
    ExplanationResult,
    IdScore,
    Pooling,
    TextScore,
)


def made(result):
    return replace(record(result), model="2022-04")


def embedding(*vectors, n_tokens=1, tokens=None):
    return Embedding(vectors=vectors, n_tokens=n_tokens, tokens=tokens)


def test_an_evaluation_is_written_as_recorded():
    result = EvaluationResult(
        n_prompt=1,
        n_expected=1,
        n_characters=5,
        log_prob=-11.3125,
        is_greedy=False,
        likeliest_text=",",
    )

    assert render_evaluation(made(result)) == {
        "model_version": "2022-04",
        "result": {
            "log_probability": -11.3125,
            "log_perplexity": 11.3125,
            "log_perplexity_per_token": 11.3125,
            "log_perplexity_per_character": 2.2625,
            "correct_greedy": False,
            "token_count": 1,
            "character_count": 5,
            "completion": ",",
        },
        "num_tokens_prompt_total": 2,
    }


def test_an_evaluation_counts_the_tokens_of_prompt_and_text():
    result = EvaluationResult(
        n_prompt=4,
        n_expected=6,
        n_characters=22,
        log_prob=-3.0,
        is_greedy=True,
        likeliest_text="keeps the doctor away.",
    )

    answer = render_evaluation(made(result))

    assert answer["num_tokens_prompt_total"] == 10
    assert answer["result"]["log_perplexity_per_token"] == 0.5
    assert answer["result"]["correct_greedy"] is True


def test_an_explanation_is_written_as_recorded():
    result = ExplanationResult(
        item_kinds=("text", "token_ids"),
        explanations=(
            Explanation(
                target=" pizza",
                items=(
                    (TextScore(start=0, length=17, score=1.875),),
                    (IdScore(score=0.14), IdScore(score=-0.15)),
                ),
                of_target=(TextScore(start=0, length=6, score=-0.28),),
            ),
        ),
        n_prompt=7,
        n_target=1,
        n_variants=4,
    )

    assert render_explanation(made(result)) == {
        "model_version": "2022-04",
        "explanations": [
            {
                "target": " pizza",
                "items": [
                    {"type": "text", "scores": [{"start": 0, "length": 17, "score": 1.875}]},
                    {"type": "token_ids", "scores": [0.14, -0.15]},
                    {"type": "target", "scores": [{"start": 0, "length": 6, "score": -0.28}]},
                ],
            }
        ],
    }


def test_a_picture_is_explained_by_rectangles():
    area = AreaScore(left=0.25, top=0.0, width=0.5, height=1.0, score=2.0)
    result = ExplanationResult(
        item_kinds=("image",),
        explanations=(Explanation(target="x", items=((area,),)),),
        n_prompt=144,
        n_target=1,
        n_variants=2,
    )

    (explanation,) = render_explanation(made(result))["explanations"]

    assert explanation["items"] == [
        {
            "type": "image",
            "scores": [
                {
                    "rect": {"left": 0.25, "top": 0.0, "width": 0.5, "height": 1.0},
                    "score": 2.0,
                }
            ],
        },
        {"type": "target", "scores": []},
    ]


def test_an_embedding_is_written_as_recorded():
    vectors = [(0, Pooling.MEAN, (0.5, 1.0)), (40, Pooling.MEAN, (2.0, 3.0))]
    result = EmbeddingResult(embeddings=(embedding(*vectors),))

    assert render_embedding(made(result)) == {
        "model_version": "2022-04",
        "embeddings": {"layer_0": {"mean": (0.5, 1.0)}, "layer_40": {"mean": (2.0, 3.0)}},
        "tokens": None,
        "num_tokens_prompt_total": 1,
    }


def test_an_embedding_has_each_pooling_of_a_layer_and_the_tokens():
    vectors = [(1, Pooling.MAX, (1.0,)), (1, Pooling.LAST_TOKEN, (2.0,))]
    result = EmbeddingResult(embeddings=(embedding(*vectors, n_tokens=2, tokens=(" ab", "c")),))

    answer = render_embedding(made(result))

    assert answer["embeddings"] == {"layer_1": {"max": (1.0,), "last_token": (2.0,)}}
    assert (answer["tokens"], answer["num_tokens_prompt_total"]) == ((" ab", "c"), 2)


def test_a_semantic_embedding_is_one_vector():
    vector = (12, Pooling.WEIGHTED_MEAN, (0.5, 1.0))
    result = EmbeddingResult(embeddings=(embedding(vector, n_tokens=3),))

    assert render_semantic(made(result)) == {
        "model_version": "2022-04",
        "embedding": (0.5, 1.0),
        "num_tokens_prompt_total": 3,
    }


def test_a_batch_is_a_vector_for_each_text_and_the_tokens_of_all():
    vectors = [(12, Pooling.WEIGHTED_MEAN, (each,)) for each in (1.0, 2.0)]
    embeddings = tuple(embedding(each, n_tokens=3) for each in vectors)

    assert render_batch(made(EmbeddingResult(embeddings=embeddings))) == {
        "model_version": "2022-04",
        "embeddings": [(1.0,), (2.0,)],
        "num_tokens_prompt_total": 6,
    }
