from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.launcher.leftover import end_leftover


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    return tmp_path / "redis.conf"


@pytest.fixture
def server(tmp_path: Path, configuration: Path) -> Iterator[subprocess.Popen[bytes]]:
    script = "import time; print(flush=True); time.sleep(60)"
    command = [sys.executable, "-c", script, str(configuration)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        # The kernel shows no arguments of a process that is still being started.
        assert process.stdout is not None
        process.stdout.readline()
        (tmp_path / "redis.pid").write_text(f"{process.pid}\n")
        yield process
        process.kill()


def test_a_server_left_behind_is_ended(
    tmp_path: Path, configuration: Path, server: subprocess.Popen[bytes]
) -> None:
    had_one = end_leftover(tmp_path / "redis.pid", configuration)

    assert had_one
    assert server.wait(timeout=10) == -15


def test_another_process_with_its_number_is_left_alone(
    tmp_path: Path, server: subprocess.Popen[bytes]
) -> None:
    had_one = end_leftover(tmp_path / "redis.pid", tmp_path / "another.conf")

    assert not had_one
    assert server.poll() is None


@pytest.mark.parametrize("content", [None, "", "x", "999999999"])
def test_a_number_of_no_process_means_nothing_was_left(
    tmp_path: Path, configuration: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "redis.pid").write_text(content)

    had_one = end_leftover(tmp_path / "redis.pid", configuration)

    assert not had_one
