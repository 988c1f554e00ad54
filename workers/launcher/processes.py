"""The processes of a service: their exact commands, and supervisor's configuration for them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from workers.contract.settings import Settings
from workers.contract.tickets import queue_name
from workers.launcher import bound_process
from workers.launcher.errors import StartRefused
from workers.launcher.instance import Directories
from workers.launcher.redis_server import RedisServer

TERMINAL = "/dev/fd/1"
BAD_SETTINGS_EXIT_CODE = 78
"""EX_CONFIG of sysexits.h: the process cannot work with these settings, ever."""

ROOT_WARNING = "You're running the worker with superuser privileges"
"""Of Celery, about pickled messages; ours are JSON, and a container's only user is often root."""

WORKER_PRIORITY = 20

START_TRIES = 1_000_000
"""Supervisor waits a second longer after each failed start, so this means for ever."""


@dataclass(frozen=True)
class Program:
    """One process that is kept running.

    Args:
        name: in the log.
        command: program and arguments.
        priority: lower starts earlier and is stopped later.
        start_s: seconds; one that ends sooner is started again with a growing delay.
        stop_s: seconds from SIGTERM to SIGKILL.
    """

    name: str
    command: tuple[str, ...]
    priority: int
    start_s: int
    stop_s: int


def worker_command(settings: Settings, python: str) -> list[str]:
    """The worker: one Celery process with a thread for each job that it runs."""
    name = f"neodim-{settings.listen_port}"
    return _celery("workers.celery_app", settings.model_name, settings.slots, name, python)


def image_worker_command(settings: Settings, python: str) -> list[str]:
    """The same for the image model, whose jobs are done one at a time."""
    assert settings.image_model_name is not None, "there is an image model"
    name = f"neodim-images-{settings.listen_port}"
    return _celery("workers.images.celery_app", settings.image_model_name, 1, name, python)


def _celery(app: str, model: str, n_threads: int, name: str, python: str) -> list[str]:
    command = [python, "-W", f"ignore:{ROOT_WARNING}", "-m", "celery", "--quiet"]
    command += ["-A", app, "worker"]
    command += ["-P", "threads", "-c", str(n_threads)]
    command += ["--disable-prefetch", "--without-gossip", "--without-mingle"]
    command += ["-Q", queue_name(model)]
    return [*command, "-n", f"{name}@%h", "-l", "WARNING"]


def api_command(python: str) -> list[str]:
    """The API; the server's own options are in `api.gunicorn_config`, read from the settings."""
    return [python, "-m", "gunicorn", "-c", "python:api.gunicorn_config", "api.app:create_app()"]


def supervisor_command(directories: Directories, python: str) -> list[str]:
    """Supervisor in the foreground, for the configuration that `write_configuration` wrote."""
    command = [python, "-m", "supervisor.supervisord", "--nodaemon", "--silent"]
    return bound_command([*command, "-c", str(configuration_path(directories))], python)


def bound_command(command: list[str], python: str) -> list[str]:
    """A command that ends when the process that started it is gone."""
    return [python, "-I", "-S", str(Path(bound_process.__file__)), *command]


def programs_of(
    settings: Settings, redis: RedisServer | None, directories: Directories, python: str
) -> list[Program]:
    """What to run.

    Args:
        settings: complete, as the processes will read them.
        redis: our own, None when another one is used.
        directories: of this service.
        python: interpreter of the environment.
    """
    programs = []
    if redis is not None:
        programs.append(Program("redis", redis.command, 10, 1, 10))
    worker, api = worker_command(settings, python), api_command(python)
    programs.append(Program("worker", tuple(worker), WORKER_PRIORITY, 10, 15))
    if settings.image_model_name is not None:
        images = image_worker_command(settings, python)
        programs.append(Program("image-worker", tuple(images), WORKER_PRIORITY, 10, 15))
    programs.append(Program("api", tuple(api), 30, 3, 10))
    return programs


def write_configuration(programs: list[Program], directories: Directories, python: str) -> None:
    """Write supervisor's configuration, and make its log start anew."""
    configuration_path(directories).write_text(
        supervisor_configuration(programs, directories, python), encoding="utf-8"
    )
    supervisor_log_path(directories).write_bytes(b"")


def supervisor_configuration(programs: list[Program], directories: Directories, python: str) -> str:
    """Supervisor's configuration: nothing but these programs, and no way in from outside."""
    lines = [
        "[supervisord]",
        "nodaemon=true",
        f"logfile={_literal(supervisor_log_path(directories))}",
        "logfile_maxbytes=0",
        f"pidfile={_literal(supervisor_pid_path(directories))}",
        f"childlogdir={_literal(directories.run)}",
        "",
    ]
    for program in programs:
        lines += [*_section(program, python), ""]
    return "\n".join([*lines, *_workers_group(programs)])


def configuration_path(directories: Directories) -> Path:
    """Where supervisor's configuration is written."""
    return directories.run / "supervisord.conf"


def supervisor_pid_path(directories: Directories) -> Path:
    """Where supervisor writes its process number, until it ends in order."""
    return directories.run / "supervisord.pid"


def supervisor_log_path(directories: Directories) -> Path:
    """Where supervisor says what it starts and what ended."""
    return directories.run / "supervisord.log"


def _workers_group(programs: list[Program]) -> list[str]:
    """All workers as one group, since supervisor stops groups one after another.

    A worker takes seconds to stop.
    """
    workers = [program.name for program in programs if program.priority == WORKER_PRIORITY]
    if not workers:
        return []
    return ["[group:workers]", f"programs={','.join(workers)}", f"priority={WORKER_PRIORITY}", ""]


def _section(program: Program, python: str) -> list[str]:
    return [
        f"[program:{program.name}]",
        f"command={_shell_words(bound_command(list(program.command), python))}",
        f"priority={program.priority}",
        "autostart=true",
        "autorestart=unexpected",
        f"exitcodes={BAD_SETTINGS_EXIT_CODE}",
        f"startsecs={program.start_s}",
        f"startretries={START_TRIES}",
        "stopsignal=TERM",
        f"stopwaitsecs={program.stop_s}",
        "stopasgroup=false",
        "killasgroup=true",
        "redirect_stderr=true",
        f"stdout_logfile={TERMINAL}",
        "stdout_logfile_maxbytes=0",
    ]


def _shell_words(command: list[str]) -> str:
    """A command as supervisor reads it: quoted, and `%` doubled."""
    return _literal(" ".join(shlex.quote(word) for word in command))


def _literal(value: Path | str) -> str:
    """A value of the configuration; a comment starts at a blank before # or ;, even in quotes."""
    text = str(value)
    if re.search(r"\s[#;]|[\r\n]", text):
        raise StartRefused(f"{text!r} cannot be used: a path may have no # or ; after a blank")
    return text.replace("%", "%%")
