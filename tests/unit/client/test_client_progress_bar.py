"""The line that shows a job's progress, on a terminal only."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
from scripted_server import KINDS, ScriptedServer, job_json, says, use

from neodim_client.jobs import Job
from neodim_client.progress_bar import line_of, shown_progress

QUEUED = job_json(state="queued", result=None, started_at=None, finished_at=None)
RUNNING = job_json(
    state="running",
    result=None,
    finished_at=None,
    progress={"tokens_generated": 15, "tokens_expected": 60},
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(terminal: io.StringIO) -> list[str]:
    """What stood on the line, one after another."""
    return [text.rstrip() for text in terminal.getvalue().split("\r") if text.strip()]


def wait(kind: str, **options: Any) -> None:
    with ScriptedServer(says(200, QUEUED), says(200, RUNNING), says(200, job_json())) as server:
        use(kind, server.url, lambda client: client.jobs.wait("job-1"), **options)


@pytest.mark.parametrize("kind", KINDS)
def test_wait_on_a_terminal_shows_the_jobs_progress_and_clears_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    wait(kind)

    assert shown(terminal) == [
        "queued  0 s",
        "running [########......................] 15/60 tokens  0 s",
        "succeeded [##############################] 1/1 tokens  0 s",
    ]
    assert terminal.getvalue().endswith("\r")
    assert terminal.getvalue().split("\r")[-2].isspace()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("stream", "options"),
    [(io.StringIO(), {}), (Terminal(), {"show_progress": False}), (None, {})],
    ids=["no terminal", "switched off", "no stream"],
)
def test_wait_shows_nothing_elsewhere(
    kind: str, stream: Any, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)

    wait(kind, **options)

    assert stream is None or stream.getvalue() == ""


def test_only_one_of_several_waits_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())

    with shown_progress(is_wanted=True) as first, shown_progress(is_wanted=True) as second:
        assert (first is None, second is None) == (False, True)
    with shown_progress(is_wanted=True) as third:
        assert third is not None


def test_line_is_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "20")

    with shown_progress(is_wanted=True) as show:
        assert show is not None
        show(Job.from_json(RUNNING))

    assert max(map(len, terminal.getvalue().split("\r"))) == 19


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"state": "queued", "is_possible": True}, "queued  7 s"),
        (
            {"state": "queued", "is_possible": False},
            "queued (no worker serves gpt2 now)  7 s",
        ),
        (
            {"state": "running", "progress": {"steps_done": 30, "steps_expected": 30}},
            "running [##############################] 30/30 steps  7 s",
        ),
        (
            {"state": "running", "progress": {"tokens_generated": 0, "tokens_expected": 0}},
            "running 0 tokens  7 s",
        ),
    ],
)
def test_line_says_where_the_job_is(fields: dict[str, Any], line: str) -> None:
    assert line_of(Job.from_json(job_json(**fields)), 7.4) == line
