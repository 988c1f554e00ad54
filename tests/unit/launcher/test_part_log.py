from __future__ import annotations

import threading
from pathlib import Path

import pytest

from workers.launcher.part_log import PartEnded, follow, parse_line

AT = "2026-12-01 02:28:35,995"


@pytest.mark.parametrize(
    ("line", "expected", "exit_code"),
    [
        (
            f"{AT} WARN exited: worker (terminated by SIGKILL; not expected)\n",
            PartEnded("worker", "terminated by SIGKILL"),
            None,
        ),
        (
            f"{AT} WARN exited: api (exit status 3; not expected)\n",
            PartEnded("api", "exit status 3"),
            3,
        ),
        (
            f"{AT} INFO exited: worker (exit status 78; expected)\n",
            PartEnded("worker", "exit status 78"),
            78,
        ),
        (
            f"{AT} INFO spawnerr: can't find command '/bin/none'\n",
            PartEnded("a part", "can't find command '/bin/none'"),
            None,
        ),
    ],
)
def test_a_line_says_which_part_ended_and_how(
    line: str, expected: PartEnded, exit_code: int | None
) -> None:
    ended = parse_line(line)

    assert ended == expected
    assert ended.exit_code == exit_code


@pytest.mark.parametrize(
    "line",
    [
        f"{AT} INFO spawned: 'worker' with pid 11070\n",
        f"{AT} WARN stopped: api (exit status 0)\n",
        "something exited: worker (exit status 78; expected)\n",
        "",
    ],
)
def test_other_lines_say_nothing(line: str) -> None:
    ended = parse_line(line)

    assert ended is None


def test_lines_are_followed_as_they_are_written_even_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"{AT} WARN exited: redis (exit status 1; not expected)\n{AT} WARN exi")
    parts = follow(path, threading.Event())

    first = next(parts)
    with path.open("a") as file:
        file.write("ted: api (exit status 2; not expected)\n")
    second = next(parts)

    assert (first.name, second.name) == ("redis", "api")


def test_following_ends_when_it_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    stopped = threading.Event()
    stopped.set()

    parts = list(follow(path, stopped))

    assert parts == []
