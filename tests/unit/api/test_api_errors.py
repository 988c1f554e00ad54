from __future__ import annotations

import pytest

import api.app  # loads every module that defines errors
from api.errors import ANSWERS, all_kinds, problem_of
from api.neodim.renderer import render_error as render_neodim_error
from api.rejections import JobCancelled, Unauthorized
from api.standard_error import render_error
from workers.contract.errors import (
    InvalidParams,
    JobFailed,
    JobNotFound,
    ModelLoading,
    NeodimError,
    OutOfMemory,
)

assert api.app

SEEN_BY_THE_API = ("api.", "workers.contract.", "neodim_sampling.")


@pytest.mark.parametrize(
    "kind", [kind for kind in all_kinds() if kind.__module__.startswith(SEEN_BY_THE_API)]
)
def test_every_error_that_the_api_can_meet_is_mapped(kind):
    assert kind in ANSWERS


def test_numbers_are_unique_and_from_2001_on():
    numbers = [answer.number for answer in ANSWERS.values()]

    assert len(set(numbers)) == len(numbers)
    assert min(numbers) == 2001


def test_an_error_that_is_not_in_the_table_answers_like_its_parent():
    class TooOdd(InvalidParams):
        pass

    assert problem_of(TooOdd("x", "is odd")).status == 400


def test_a_rejected_parameter_is_named():
    problem = problem_of(InvalidParams("top_k", "must be at least 1, not -1"))

    assert (problem.status, problem.code, problem.param) == (400, "invalid_request", "top_k")
    assert problem.message == "top_k: must be at least 1, not -1"


def test_what_may_work_later_says_when():
    assert problem_of(ModelLoading("wait")).headers == {"Retry-After": "3"}
    assert problem_of(OutOfMemory("no")).headers == {}


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("invalid_request", 400),
        ("prompt_too_long", 400),
        ("no_token_left", 400),
        ("stop_pattern_timeout", 400),
        ("unknown_model", 404),
        ("out_of_memory", 500),
        ("worker_lost", 500),
        ("store_unavailable", 503),
        ("of_another_version", 500),
    ],
)
def test_a_failed_job_answers_as_its_recorded_code_says(code, status):
    problem = problem_of(JobFailed(code, "because"))

    assert (problem.status, problem.code, problem.message) == (status, code, "because")


@pytest.mark.parametrize(
    ("code", "message", "param"),
    [
        ("invalid_request", "logit_bias: there is no token 9", "logit_bias"),
        ("prompt_too_long", "messages: 9 tokens: too many", "messages"),
        ("template_refused", "No system role: here", None),
        ("engine_failure", "unexpected: KeyError", None),
    ],
)
def test_the_field_that_a_worker_refused_is_named(code, message, param):
    assert problem_of(JobFailed(code, message)).param == param


def test_statuses_that_clients_depend_on():
    statuses = {
        JobNotFound("x"): 404,
        Unauthorized("who?"): 401,
        JobCancelled("x"): 409,
        NeodimError("?"): 500,
    }

    assert {error: problem_of(error).status for error in statuses} == statuses


def test_each_protocol_writes_an_error_in_its_own_shape():
    problem = problem_of(InvalidParams("top_k", "is odd"))

    assert render_neodim_error(problem) == {"error": "top_k: is odd"}
    assert render_error(problem) == {
        "code": 2003,
        "message": "top_k: is odd",
        "error": {
            "message": "top_k: is odd",
            "type": "invalid_request_error",
            "code": "invalid_request",
            "param": "top_k",
        },
    }
