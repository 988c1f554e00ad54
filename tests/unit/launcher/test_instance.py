from __future__ import annotations

import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from workers.contract.settings import Settings, read_settings, write_settings
from workers.launcher.errors import BadFlag
from workers.launcher.instance import (
    ALLOWED,
    ROOT,
    Directories,
    lock,
    make_directories,
    write_private,
)
from workers.launcher.machine import available_cores
from workers.launcher.settings import child_environment, redis_url


def test_the_data_directory_is_made_for_this_user_alone(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "new" / "data"))

    directories = make_directories(settings)

    assert directories.data == tmp_path / "new" / "data"
    for path in (directories.data, directories.run, directories.redis):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_the_default_data_directory_is_beside_the_start_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.launcher.instance.ROOT", tmp_path)

    directories = make_directories(Settings())

    assert directories.data == tmp_path / "data"
    assert (ROOT / "start.sh").is_file()


def test_a_data_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "data"

    with pytest.raises(BadFlag) as refusal:
        make_directories(Settings(data_dir=str(path)))

    assert str(refusal.value) == f'--data-dir: "{path}" cannot be used: Not a directory; {ALLOWED}'


def test_a_second_service_is_refused_while_the_first_has_the_directory(tmp_path: Path) -> None:
    directories = make_directories(Settings(data_dir=str(tmp_path)))

    with lock(directories), pytest.raises(BadFlag) as refusal:
        lock(directories)

    assert str(refusal.value).startswith(f'--data-dir: "{tmp_path}" is in use by another Neodim')
    assert f"(process {os.getpid()})" in str(refusal.value)


def test_the_directory_can_be_taken_again_when_the_first_service_ended(tmp_path: Path) -> None:
    directories = make_directories(Settings(data_dir=str(tmp_path)))
    lock(directories).close()

    with lock(directories) as again:
        assert not again.closed


def test_settings_are_the_same_for_the_process_that_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(Settings(), api_key=("a", "b"), max_length=64, redis_url="unix:///r.sock")
    path = tmp_path / "settings.json"

    write_settings(settings, path)
    monkeypatch.setenv("NEODIM_SETTINGS", child_environment(path, 1)["NEODIM_SETTINGS"])

    assert read_settings() == settings
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_private_file_stays_private_when_it_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "redis.conf"

    write_private(path, "one")
    write_private(path, "two")

    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_children_compute_with_the_cores_unless_the_user_said_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    ours = child_environment(tmp_path, 3)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    theirs = child_environment(tmp_path, 3)

    assert ours["OMP_NUM_THREADS"] == "3"
    assert theirs["OMP_NUM_THREADS"] == "1"
    assert ours["TOKENIZERS_PARALLELISM"] == "false"
    assert ours["HF_HUB_DISABLE_TELEMETRY"] == "1"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_bars_are_drawn_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)

    assert ("TQDM_DISABLE" in child_environment(tmp_path, 1)) != is_terminal


@pytest.mark.parametrize(("value", "expected"), [("", None), ("redis://h/1", "redis://h/1")])
def test_the_environment_may_name_a_redis(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: str | None
) -> None:
    monkeypatch.setenv("REDIS_URL", value)

    url = redis_url()

    assert url == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("max 100000", 8), ("200000 100000", 2), ("50000 100000", 1), ("x", 8)]
)
def test_cores_are_limited_by_the_quota_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    quota = tmp_path / "cpu.max"
    quota.write_text(text)

    n_cores = available_cores(quota)

    assert n_cores == expected


def test_directories_are_inside_the_data_directory() -> None:
    directories = Directories(Path("/d"))

    assert (directories.run, directories.redis) == (Path("/d/run"), Path("/d/redis"))
