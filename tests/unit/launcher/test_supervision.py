"""Supervisor itself, with small programs in place of ours."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.launcher.announcement import Announcement
from workers.launcher.errors import StartRefused
from workers.launcher.instance import Directories
from workers.launcher.processes import (
    Program,
    supervisor_command,
    supervisor_log_path,
    write_configuration,
)
from workers.launcher.settings import child_environment
from workers.launcher.supervision import Plan, Supervision, relay

PATIENCE_S = 30
SLEEP = ("sleep", "60")


@pytest.fixture
def directories(tmp_path: Path) -> Directories:
    directories = Directories(tmp_path)
    directories.run.mkdir()
    return directories


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def supervision_of(directories: Directories, *programs: Program) -> Supervision:
    return Supervision(
        Plan(
            command=supervisor_command(directories, sys.executable),
            environment=child_environment(directories.run / "settings.json", 1),
            directory=str(directories.data),
            prepare=lambda: write_configuration(list(programs), directories, sys.executable),
            part_log=supervisor_log_path(directories),
            announcement=Announcement("127.0.0.1", 1, "m", None, "me"),
        )
    )


def python(directories: Directories, script: str) -> Program:
    path = directories.data / "part.py"
    path.write_text(script)
    return Program("part", (sys.executable, str(path)), 10, 1, 5)


def when(path: Path, act: object) -> threading.Thread:
    def wait() -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_sigint_ends_everything_and_the_status_is_zero(directories: Directories) -> None:
    started = directories.data / "started"
    script = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    supervision = supervision_of(directories, python(directories, script))
    waiter = when(started, lambda: os.kill(os.getpid(), signal.SIGINT))

    status = supervision.run()

    waiter.join()
    assert status == 0
    assert not Path(f"/proc/{started.read_text()}").exists()


def test_a_part_that_dies_is_started_again_with_a_line(
    directories: Directories, capfd: pytest.CaptureFixture[str]
) -> None:
    again = directories.data / "again"
    script = (
        "import os, pathlib, time; first = pathlib.Path('first')\n"
        "if first.exists(): pathlib.Path('again').touch(); time.sleep(60)\n"
        "first.touch(); print('so it began', flush=True); os.kill(os.getpid(), 9)"
    )
    supervision = supervision_of(directories, python(directories, script))
    waiter = when(again, supervision.stop)

    status = supervision.run()

    waiter.join()
    output = capfd.readouterr().out
    assert status == 0
    assert again.exists()
    assert "so it began" in output
    assert "part ended (terminated by SIGKILL); it is started again" in output


def test_settings_that_a_part_cannot_work_with_end_the_start(
    directories: Directories, capfd: pytest.CaptureFixture[str]
) -> None:
    script = "import sys; print('no such device'); sys.exit(78)"
    supervision = supervision_of(
        directories, python(directories, script), Program("other", SLEEP, 20, 1, 5)
    )

    status = supervision.run()

    output = capfd.readouterr().out
    assert status == 78
    assert "no such device" in output
    assert "The part cannot work with these settings" in output


def test_supervisor_is_started_again_when_it_dies(
    directories: Directories, capfd: pytest.CaptureFixture[str]
) -> None:
    script = "import os; os.mkdir('one') if not os.path.exists('one') else os.mkdir('two')"
    script += "; import time; time.sleep(60)"
    supervision = supervision_of(directories, python(directories, script))
    pid_file = directories.run / "supervisord.pid"

    def kill_supervisor() -> None:
        os.kill(int(pid_file.read_text()), signal.SIGKILL)

    killer = when(directories.data / "one", kill_supervisor)
    waiter = when(directories.data / "two", supervision.stop)

    status = supervision.run()

    killer.join()
    waiter.join()
    assert status == 0
    assert (directories.data / "two").exists()
    assert "supervisor ended (status -9)" in capfd.readouterr().out


def test_a_configuration_that_supervisor_refuses_ends_the_start(directories: Directories) -> None:
    supervision = supervision_of(directories, Program("bad name:", SLEEP, 1, 1, 1))

    with pytest.raises(StartRefused, match="does not take its configuration"):
        supervision.run()


def test_output_is_copied_until_its_writers_are_gone() -> None:
    source, into = os.pipe()
    out, target = os.pipe()
    os.write(into, b"two\nlines\n")
    os.close(into)

    relay(os.fdopen(source, "rb"), target)

    os.close(target)
    with os.fdopen(out, "rb") as copied:
        assert copied.read() == b"two\nlines\n"


def test_output_that_nobody_reads_does_not_block_its_writers() -> None:
    source, into = os.pipe()
    out, target = os.pipe()
    os.close(out)
    os.write(into, b"unread")
    os.close(into)

    relay(os.fdopen(source, "rb"), target)

    os.close(target)
