"""By which twelve hex digits a worker goes at nodes: its container's id, if it has one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

LENGTH = 12
_PROC = Path("/proc/self")
_FIRST_PROCESS = Path("/proc/1")
_IN_CGROUP = re.compile(r"[/-]([0-9a-f]{64})(?:\.scope)?$", re.MULTILINE)
# A container's own files are mounted from a directory that bears its id. A host's list of mounts
# names containers as well, but not over these files.
_IN_MOUNTS = re.compile(
    r"containers/([0-9a-f]{64})/\S*(?:hostname|hosts|resolv\.conf) /etc/(?:hostname|hosts|resolv)"
)


def worker_cid(*, hostname: str, service: str, worker: str, has_container: bool) -> str:
    """The worker's id, the same after a restart.

    Args:
        hostname: of the machine or container.
        service: tells services of this host apart.
        worker: tells this service's workers of this host apart.
        has_container: whether it is alone in its container, and goes by that one's id.
    """
    container = container_id(hostname)
    if container is not None and has_container:
        return container
    names = "\n".join((container or hostname, service, worker))
    return hashlib.sha256(names.encode()).hexdigest()[:LENGTH]


def is_main_program(words: Iterable[str], proc: Path = _FIRST_PROCESS) -> bool:
    """Whether this container runs for the sake of a command, and not of something else beside.

    Args:
        words: of which the command has one.
        proc: what the kernel says of the container's first process.
    """
    command = _read(proc / "cmdline")
    return any(word in command for word in words)


def container_id(hostname: str, proc: Path = _PROC) -> str | None:
    """The first digits of the id of the container that this process runs in; None = in none.

    Args:
        hostname: Docker gives a container's first digits as its name.
        proc: what the kernel says of this process.
    """
    for name, pattern in (("cgroup", _IN_CGROUP), ("mountinfo", _IN_MOUNTS)):
        if found := pattern.search(_read(proc / name)):
            return found[1][:LENGTH]
    return hostname if re.fullmatch(r"[0-9a-f]{12}", hostname) else None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
