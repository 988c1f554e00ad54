from __future__ import annotations

import shlex
from configparser import RawConfigParser
from pathlib import Path

import pytest

from workers.contract.settings import Settings
from workers.launcher.errors import StartRefused
from workers.launcher.instance import Directories
from workers.launcher.processes import (
    Program,
    api_command,
    image_worker_command,
    programs_of,
    supervisor_command,
    supervisor_configuration,
    worker_command,
    write_configuration,
)
from workers.launcher.redis_server import RedisBinary, plan_server

PYTHON = "/opt/my env/bin/python"
DIRECTORIES = Directories(Path("/srv/100% data"))


def parsed(programs: list[Program]) -> RawConfigParser:
    parser = RawConfigParser(inline_comment_prefixes=(";", "#"))
    parser.read_string(supervisor_configuration(programs, DIRECTORIES, PYTHON))
    return parser


def test_the_worker_has_a_thread_for_each_slot_and_listens_to_its_models_queue() -> None:
    settings = Settings(model_name="my model", slots=8, listen_port=9000)

    command = worker_command(settings, PYTHON)

    assert command[0] == PYTHON
    assert command[command.index("-c") + 1] == "8"
    assert command[command.index("-P") + 1] == "threads"
    assert command[command.index("-Q") + 1] == "neodim.my_model"
    assert command[command.index("-n") + 1] == "neodim-9000@%h"
    assert {"--disable-prefetch", "--without-gossip", "--without-mingle"} <= set(command)


def test_an_image_model_has_a_worker_of_its_own_that_does_one_job_at_a_time() -> None:
    settings = Settings(model_name="text", image_model_name="pictures", listen_port=9000)

    names = [program.name for program in programs_of(settings, None, DIRECTORIES, PYTHON)]
    text, images = worker_command(settings, PYTHON), image_worker_command(settings, PYTHON)

    assert names == ["worker", "image-worker", "api"]
    assert images[images.index("-A") + 1] == "workers.images.celery_app"
    assert images[images.index("-c") + 1] == "1"
    assert images[images.index("-Q") + 1] == "neodim.pictures"
    assert images[images.index("-n") + 1] != text[text.index("-n") + 1]


def test_workers_are_stopped_together() -> None:
    settings = Settings(model_name="text", image_model_name="pictures")

    sections = parsed(programs_of(settings, None, DIRECTORIES, PYTHON))

    assert sections["group:workers"]["programs"] == "worker,image-worker"


def test_the_api_reads_its_options_from_its_own_module() -> None:
    command = api_command(PYTHON)

    assert command[1:] == [
        "-m",
        "gunicorn",
        "-c",
        "python:api.gunicorn_config",
        "api.app:create_app()",
    ]


def test_redis_starts_first_and_stops_last() -> None:
    redis = plan_server(RedisBinary("/bin/redis-server", "Redis 7.0"), DIRECTORIES)

    programs = programs_of(Settings(), redis, DIRECTORIES, PYTHON)

    by_priority = sorted(programs, key=lambda program: program.priority)
    assert [program.name for program in by_priority] == ["redis", "worker", "api"]


def test_no_redis_is_run_when_another_one_is_used() -> None:
    programs = programs_of(Settings(), None, DIRECTORIES, PYTHON)

    assert [program.name for program in programs] == ["worker", "api"]


def test_every_program_is_kept_running_for_ever_unless_its_settings_are_bad() -> None:
    sections = parsed(programs_of(Settings(), None, DIRECTORIES, PYTHON))

    for name in ("program:worker", "program:api"):
        section = sections[name]
        assert section["autorestart"] == "unexpected"
        assert section["exitcodes"] == "78"
        assert int(section["startretries"]) >= 1_000_000
        assert int(section["startsecs"]) >= 1
        assert section["stopsignal"] == "TERM"
        assert section["killasgroup"] == "true"
        assert (section["stdout_logfile"], section["stdout_logfile_maxbytes"]) == ("/dev/fd/1", "0")


def test_a_command_is_read_back_as_it_was_with_blanks_quotes_and_percent_signs() -> None:
    words = ("/a b/100%", "it's", 'say "hi"', "name@%h", "")
    sections = parsed([Program("it", words, 1, 1, 1)])

    found = shlex.split(sections["program:it"]["command"].replace("%%", "%"))

    assert found[: len(found) - len(words)][0] == PYTHON
    assert tuple(found[-len(words) :]) == words


def test_supervisor_writes_into_the_data_directory_and_lets_nobody_in() -> None:
    sections = parsed([])

    assert sections["supervisord"]["logfile"] == "/srv/100%% data/run/supervisord.log"
    assert sections["supervisord"]["pidfile"] == "/srv/100%% data/run/supervisord.pid"
    assert sections.sections() == ["supervisord"]


@pytest.mark.parametrize("name", ["a #b", "a ;b", "a\nb"])
def test_a_path_that_supervisor_would_cut_is_refused(name: str) -> None:
    directories = Directories(Path("/srv") / name)

    with pytest.raises(StartRefused, match="cannot be used"):
        supervisor_configuration([], directories, PYTHON)


def test_supervisor_runs_in_the_foreground_with_the_written_configuration(tmp_path: Path) -> None:
    directories = Directories(tmp_path)
    directories.run.mkdir()

    write_configuration([Program("it", ("true",), 1, 1, 1)], directories, PYTHON)
    command = supervisor_command(directories, PYTHON)

    assert "--nodaemon" in command
    assert "[program:it]" in Path(command[-1]).read_text()
