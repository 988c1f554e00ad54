"""A service of our own, started as its users start it and ended with the bench."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.machine import memory_bytes
from bench.model_choice import ROOT, ModelChoice

PATIENCE_S = 240
POLL_S = 0.2
LOOPBACK = "127.0.0.1"
PROCESSES = Path("/proc")


class ServiceFailed(Exception):
    """The service did not start."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running service.

    Args:
        address: where it listens.
        port: there.
        pid: of its launcher; None where it was not started here.
    """

    address: str
    port: int
    pid: int | None

    def resident_bytes(self) -> dict[str, int]:
        """Resident memory by process; none where the service was not started here."""
        if self.pid is None:
            return {}
        return {name_of(pid): memory_bytes("VmRSS", _status(pid)) for pid in descendants(self.pid)}


@contextmanager
def running_service(choice: ModelChoice, slots: int) -> Iterator[Service]:
    """A service of the chosen model that is ended afterwards.

    Raises:
        ServiceFailed: it does not become ready; with what it said.
    """
    with tempfile.TemporaryDirectory(prefix="neodim-", ignore_cleanup_errors=True) as directory:
        log = Path(directory) / "terminal.log"
        port = _free_port()
        flags = {
            "--data-dir": directory,
            "--model": choice.source,
            "--precision": choice.precision,
            "--layers": "0" if choice.device == "cpu" else "a",
            "--slots": str(slots),
            "--listen-port": str(port),
        }
        command = [sys.executable, "-P", "-m", "workers.launcher"]
        command += [part for pair in flags.items() for part in pair]
        with log.open("wb") as stream:
            process = subprocess.Popen(command, cwd=ROOT, stdout=stream, stderr=stream)
        try:
            _wait_until_ready(process, port, log)
            yield Service(LOOPBACK, port, process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def descendants(pid: int) -> list[int]:
    """Processes that a process started, and those that they started, and so on."""
    parents = {
        int(each.parent.name): int(each.read_text().rpartition(")")[2].split()[1])
        for each in PROCESSES.glob("[0-9]*/stat")
    }
    found = [pid]
    for parent in found:
        found += [child for child, its_parent in parents.items() if its_parent == parent]
    return found[1:]


def name_of(pid: int) -> str:
    """A process's number and what it is, from its command line."""
    words = (PROCESSES / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    return f"{pid} {' '.join(Path(word).name for word in words[:5]).strip()}"


def _status(pid: int) -> Path:
    return PROCESSES / str(pid) / "status"


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        if _is_ready(port):
            return
        time.sleep(POLL_S)
    raise ServiceFailed(f"the service did not become ready:\n{log.read_text()[-3000:]}")


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
