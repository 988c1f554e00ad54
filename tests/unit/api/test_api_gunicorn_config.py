"""How the API's master process ends."""

from __future__ import annotations

import os
import shutil
import signal
from types import SimpleNamespace

import pytest

from workers.contract.settings import SETTINGS_PATH_VARIABLE, Settings, write_settings


@pytest.fixture
def config(tmp_path, monkeypatch):
    write_settings(Settings(), tmp_path / "settings.json")
    monkeypatch.setenv(SETTINGS_PATH_VARIABLE, str(tmp_path / "settings.json"))
    from api import gunicorn_config

    return gunicorn_config


def started(*command):
    return os.posix_spawn(shutil.which(command[0]), command, {})


def test_no_killed_worker_outlives_the_master(config):
    killed = started("sleep", "600")
    os.kill(killed, signal.SIGKILL)

    config.on_exit(SimpleNamespace(WORKERS={killed: None}))

    with pytest.raises(ChildProcessError):
        os.waitpid(killed, os.WNOHANG)


def test_a_worker_that_is_already_gone_is_not_waited_for(config):
    gone = started("true")
    os.waitpid(gone, 0)

    config.on_exit(SimpleNamespace(WORKERS={gone: None}))


def test_a_worker_ends_its_connections_before_the_master_loses_patience(config):
    kept = {}
    worker = SimpleNamespace(cfg=SimpleNamespace(set=kept.__setitem__))

    config.post_worker_init(worker)

    # It notices a stop within a second, looks once a second, and ends what is left within another.
    assert kept["graceful_timeout"] + 3 <= config.graceful_timeout
