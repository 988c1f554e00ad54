from __future__ import annotations

from dataclasses import replace

import pytest

from api.jobs.events import parse_event_id
from api.jobs.renderer import render_job, render_time
from api.jobs.schema import JobSchema
from api.protocols import Protocol, Protocols
from workers.contract.errors import InvalidParams
from workers.contract.job_record import JobRecord, JobState
from workers.contract.store import FIRST_EVENT
from workers.contract.text_result import PenaltyReport, PromptReport, TextResult

RECORD = JobRecord(
    id="1-2",
    protocol="echo",
    model="tiny",
    state=JobState.RUNNING,
    owner="secret",
    created_ms=0,
    started_ms=1_700_000_000_007,
    finished_ms=None,
    attempt=2,
    worker="w",
    n_generated=3,
    n_expected=8,
    result=None,
    error=None,
)
ECHO = Protocol(name="echo", load=lambda *_: None, render=lambda record: {"of": record.id})
PROTOCOLS = Protocols([ECHO])
RESULT = TextResult(
    prompt=PromptReport(
        preamble="",
        used_prompt="x",
        n_preamble=0,
        n_original_prompt=1,
        n_original_input=1,
        n_used_prompt=1,
        n_used_input=1,
    ),
    penalty=PenaltyReport(),
    sequences=(),
    n_generated=0,
)


def test_times_are_in_utc_with_milliseconds():
    assert render_time(0) == "1970-01-01T00:00:00.000Z"
    assert render_time(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"
    assert render_time(None) is None


def test_a_running_job_has_no_result_and_no_owner():
    assert render_job(RECORD, PROTOCOLS, is_possible=True) == {
        "id": "1-2",
        "protocol": "echo",
        "model": "tiny",
        "state": "running",
        "created_at": "1970-01-01T00:00:00.000Z",
        "started_at": "2023-11-14T22:13:20.007Z",
        "finished_at": None,
        "attempt": 2,
        "is_possible": True,
        "worker": "w",
        "progress": {"tokens_generated": 3, "tokens_expected": 8},
        "result": None,
        "error": None,
    }


def test_a_result_is_written_by_the_protocol_that_asked():
    body = render_job(replace(RECORD, result=RESULT), PROTOCOLS, is_possible=True)

    assert body["result"] == {"of": "1-2"}
    assert "partial" not in body


def test_a_partial_result_is_marked():
    partial = replace(RESULT, is_partial=True)

    assert render_job(replace(RECORD, result=partial), PROTOCOLS, is_possible=False)["partial"]


def test_the_documentation_has_the_fields_of_a_job():
    body = render_job(
        replace(RECORD, result=replace(RESULT, is_partial=True)), PROTOCOLS, is_possible=True
    )

    assert set(body) == set(JobSchema().fields)


def test_an_unknown_protocol_is_refused_with_the_known_ones():
    with pytest.raises(InvalidParams, match="protocol: 'smoke' is not known; allowed are echo"):
        PROTOCOLS.named("smoke")


@pytest.mark.parametrize("event_id", ["0-0", "5", "1700000000000-12", "18446744073709551615-0"])
def test_ids_of_events_are_taken(event_id):
    assert parse_event_id("x", event_id) == event_id


def test_no_id_is_the_beginning():
    assert parse_event_id("x", None) == FIRST_EVENT


@pytest.mark.parametrize(
    "event_id", ["", "$", "+", "-", "1-", "-1", "1-2-3", "18446744073709551616"]
)
def test_what_is_no_id_of_an_event_is_refused(event_id):
    with pytest.raises(InvalidParams):
        parse_event_id("x", event_id)
