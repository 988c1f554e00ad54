"""The command behind `start.sh`: from arguments to a running service."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace

from workers.contract.settings import VERSION, Settings, write_settings
from workers.launcher.announcement import Announcement
from workers.launcher.api_keys import all_keys
from workers.launcher.errors import StartRefused
from workers.launcher.external_redis import check_external, without_password
from workers.launcher.flags import HELP, is_asked, parse_arguments
from workers.launcher.flags import VERSION as VERSION_FLAG
from workers.launcher.help_text import help_text
from workers.launcher.instance import ROOT, Directories, lock, make_directories, write_private
from workers.launcher.leftover import end_leftover
from workers.launcher.listening import check_listening
from workers.launcher.machine import allow_open_files, available_cores
from workers.launcher.model_files import find_image_model, find_model
from workers.launcher.processes import (
    programs_of,
    supervisor_command,
    supervisor_log_path,
    supervisor_pid_path,
    write_configuration,
)
from workers.launcher.redis_server import (
    RedisServer,
    configuration_path,
    find_binary,
    pid_path,
    plan_server,
)
from workers.launcher.settings import child_environment, redis_url
from workers.launcher.supervision import Plan, Supervision, say
from workers.launcher.validation import check_model, warnings_about

LEFT_BEHIND_S = 30
"""How long the processes of a start that was killed may take to end; the kernel told them to."""


def main(argv: Sequence[str]) -> int:
    """Start the service and stay until it ends.

    Returns:
        The exit status.
    """
    if is_asked(HELP, argv):
        print(help_text(), end="")
        return 0
    if is_asked(VERSION_FLAG, argv):
        print(VERSION)
        return 0
    try:
        return _serve(parse_arguments(argv))
    except StartRefused as refusal:
        print(refusal, file=sys.stderr)
        return refusal.exit_code


def _serve(asked: Settings) -> int:
    model = find_model(asked.model)
    check_model(asked, model)
    images = None if asked.image_model is None else find_image_model(asked.image_model, model)
    keys = all_keys(asked)
    for warning in warnings_about(asked, model):
        say(warning)
    directories = make_directories(asked)
    with lock(directories):
        _check_listening(asked, directories)
        url, server = _choose_redis(asked, directories)
        settings = replace(
            asked,
            model=model.source,
            model_name=model.name,
            image_model=None if images is None else images.source,
            image_model_name=None if images is None else images.name,
            api_key=keys,
            redis_url=url,
            data_dir=str(directories.data),
            instance=secrets.token_hex(8),
        )
        allow_open_files()
        return Supervision(_plan(settings, server, directories)).run()


def _check_listening(asked: Settings, directories: Directories) -> None:
    """Refuse a port in use, unless it is by what an earlier start left and is about to end."""
    patience_s = 0
    if supervisor_pid_path(directories).exists():
        say("The last start did not end in order; its processes are given time to end")
        patience_s = LEFT_BEHIND_S
    check_listening(asked.listen_address, asked.listen_port, patience_s)


def _choose_redis(asked: Settings, directories: Directories) -> tuple[str, RedisServer | None]:
    """The address of the Redis to use, and how to start it when it is our own."""
    url, source = asked.redis_url or redis_url(), "--redis-url" if asked.redis_url else "$REDIS_URL"
    if url is not None:
        for warning in check_external(url, source):
            say(f"WARNING: {warning}")
        say(f"Using Redis at {without_password(url)}")
        return url, None
    server = plan_server(find_binary(), directories)
    say(f"Starting {server.description}")
    return server.url, server


def _plan(settings: Settings, server: RedisServer | None, directories: Directories) -> Plan:
    """What to run for complete settings."""
    settings_path = directories.run / "settings.json"

    def prepare() -> None:
        write_settings(settings, settings_path)
        programs = programs_of(settings, server, directories, sys.executable)
        write_configuration(programs, directories, sys.executable)
        if server is not None:
            end_leftover(pid_path(directories), configuration_path(directories))
            write_private(configuration_path(directories), server.configuration)

    models = settings.model_names
    say(f"Starting the API and a worker for {' and one for '.join(models)}")
    return Plan(
        command=supervisor_command(directories, sys.executable),
        environment=child_environment(settings_path, max(1, available_cores() // len(models))),
        directory=str(ROOT),
        prepare=prepare,
        part_log=supervisor_log_path(directories),
        announcement=Announcement.of(settings),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
