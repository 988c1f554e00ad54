from __future__ import annotations

import pytest

from api.aleph_alpha.errors import error_status, render_error
from api.app import error_answer_at
from api.errors import problem_of
from api.rejections import BodyTooLarge, MalformedBody, PathNotFound, Unauthorized, WrongMediaType
from workers.contract.errors import (
    InvalidParams,
    JobFailed,
    MissingCapability,
    ModelLoading,
    OutOfMemory,
    PromptTooLong,
    UnknownModel,
)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidParams("top_k", "is odd"), 400, "INVALID_REQUEST"),
        (MalformedBody("no JSON"), 400, "INVALID_REQUEST"),
        (BodyTooLarge("too long"), 400, "INVALID_REQUEST"),
        (WrongMediaType("a form"), 400, "INVALID_REQUEST"),
        (PromptTooLong("too long"), 400, "INVALID_REQUEST"),
        (JobFailed("prompt_too_long", "too long"), 400, "INVALID_REQUEST"),
        (MissingCapability("no pictures"), 400, "MISSING_CAPABILITY"),
        (JobFailed("missing_capability", "no pictures"), 400, "MISSING_CAPABILITY"),
        (UnknownModel("no such model"), 404, "UNKNOWN_MODEL"),
        (PathNotFound("nothing here"), 404, "NOT_FOUND"),
        (Unauthorized("no key"), 401, "UNAUTHORIZED"),
        (ModelLoading("wait"), 503, "MODEL_LOADING"),
        (OutOfMemory("no memory"), 500, "OUT_OF_MEMORY"),
    ],
)
def test_an_error_has_a_sentence_a_word_and_a_status_that_the_client_understands(
    error, status, code
):
    problem = problem_of(error)

    assert render_error(problem) == {"error": str(error), "code": code}
    assert error_status(problem) == status


def shape(path):
    """What the errors of a path are made of, and the status of one that is 413 elsewhere."""
    body, status = error_answer_at(path)(problem_of(BodyTooLarge("too long")))
    return sorted(body), status


OWN = (["code", "error"], 400)
STANDARD = (["code", "error", "message"], 413)
NEODIM = (["error"], 413)


@pytest.mark.parametrize("prefix", ["", "/v1"])
@pytest.mark.parametrize("path", ["/complete", "/steering_concepts", "/translate", "/rerank"])
def test_errors_of_the_protocols_paths_are_its_own(prefix, path):
    assert shape(prefix + path) == OWN


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/completions", STANDARD),
        ("/v1/completions", STANDARD),
        ("/v1/completed", STANDARD),
        ("/models/tiny", STANDARD),
        ("/generate", NEODIM),
        ("/complete/x", NEODIM),
        ("", NEODIM),
    ],
)
def test_errors_of_other_paths_stay_as_they_are(path, found):
    assert shape(path) == found
