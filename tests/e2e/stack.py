"""The whole service as its users start it, and what tests do to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import requests

from workers.contract.redis_client import Client, connect

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "data" / "tiny"
PATIENCE_S = 240

T = TypeVar("T")


class Stack:
    """One running service.

    Args:
        data_dir: short, since a Unix socket is in it.
        flags: of the launcher, beside data directory and port.
    """

    def __init__(self, data_dir: Path, *flags: str) -> None:
        self.data_dir = data_dir
        self._flags = flags
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = data_dir / "terminal.log"

    def start(self) -> None:
        """Start it, and wait until it says that it is ready."""
        command = [sys.executable, "-m", "workers.launcher", "--data-dir", str(self.data_dir)]
        command += ["--listen-port", str(self.port), *self._flags]
        self.data_dir.mkdir(exist_ok=True)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        self.until(self._is_ready, "it is ready")

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit status."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(PATIENCE_S)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self.log_path.read_text()[-3000:]
        try:
            return requests.get(f"{self.url}/health/ready", timeout=5).status_code == 200
        except (requests.ConnectionError, requests.Timeout):
            return False

    def redis(self) -> Client:
        """A client of its Redis."""
        settings = json.loads((self.data_dir / "run" / "settings.json").read_text())
        return connect(settings["redis_url"])

    def processes(self, word: str = "") -> dict[int, str]:
        """What the launcher started, and whatever that started: pid and command."""
        found: dict[int, str] = {}
        parents = {self._process.pid}
        for _ in range(4):
            table = _process_table()
            found.update({pid: command for pid, parent, command in table if parent in parents})
            parents |= set(found)
        return {pid: command for pid, command in found.items() if word in command}

    def worker_pid(self) -> int:
        """The process that holds the model."""
        return next(iter(self.processes("workers.celery_app")))

    def kill_worker(self) -> None:
        """End the worker without a chance to say anything."""
        os.kill(self.worker_pid(), signal.SIGKILL)

    def generate(self, **fields: Any) -> dict[str, Any]:
        """The answer to a `/generate` that has to succeed."""
        reply = requests.post(f"{self.url}/generate", json=fields, timeout=PATIENCE_S)
        assert reply.status_code == 200, reply.text
        answer: dict[str, Any] = reply.json()
        return answer

    def submit(self, **fields: Any) -> str:
        """Id of a new job."""
        body = {"protocol": "neodim", "request": fields}
        reply = requests.post(f"{self.url}/v1/jobs", json=body, timeout=30)
        assert reply.status_code == 202, reply.text
        return str(reply.json()["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """The job as it stands."""
        reply = requests.get(f"{self.url}/v1/jobs/{job_id}", timeout=30)
        assert reply.status_code == 200, reply.text
        job: dict[str, Any] = reply.json()
        return job

    def ended(self, job_id: str) -> dict[str, Any]:
        """The job when it has ended."""
        final = ("succeeded", "failed", "cancelled")
        return self.until(
            lambda: job if (job := self.job(job_id))["state"] in final else None, "the job ends"
        )

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """What `look` sees once it sees anything."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            seen = look()
            if seen:
                return seen
            time.sleep(0.05)
        raise AssertionError(
            f"not within {PATIENCE_S} s: {what}\n{self.log_path.read_text()[-3000:]}"
        )


@contextmanager
def running(*flags: str) -> Iterator[Stack]:
    """A service that is ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="neodim-", ignore_cleanup_errors=True) as directory:
        stack = Stack(Path(directory), *flags)
        try:
            stack.start()
            yield stack
        finally:
            stack.stop()


def free_port() -> int:
    """A port of the loopback interface on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _process_table() -> Iterator[tuple[int, int, str]]:
    """Process, parent and command of everything on this machine."""
    table = subprocess.check_output(["ps", "-wweo", "pid=,ppid=,args="], text=True)
    for line in table.splitlines():
        pid, parent, command = line.split(None, 2)
        if not command.startswith("ps -ww"):
            yield int(pid), int(parent), command
