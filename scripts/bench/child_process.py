"""The parent's side of the line protocol: programs that are loaded once and measured in turn."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.settings import child_environment

SCRIPTS = Path(__file__).resolve().parents[1]
PATIENCE_S = 900
"""How long a line may take: vLLM compiles for minutes while it loads."""

GOODBYE_S = 30


class ChildFailed(Exception):
    """A child process ended, or said nothing for too long."""


@dataclass(frozen=True, slots=True)
class ChildCommand:
    """How to start a child.

    Args:
        python: interpreter of its environment.
        module: of `bench.children`.
        arguments: its command line.
        environment: variables to set.
    """

    python: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class ChildProcess:
    """A program with a model, which measures the loads that it is given.

    Args:
        name: for messages.
        command: how to start it.
    """

    def __init__(self, name: str, command: ChildCommand) -> None:
        self.name = name
        # Not in a `with`: it is open for as long as the process lives, and closed in `stop`.
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [command.python, "-m", f"bench.children.{command.module}", *command.arguments],
            # From here the package `bench` is found, and none of its modules hides another.
            cwd=SCRIPTS,
            env=child_environment(command.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        try:
            self.ready = self._read()
        except BaseException:
            self.stop()
            raise

    def run(self, load: Mapping[str, Any]) -> tuple[float, int]:
        """Seconds and generated tokens of a load.

        Raises:
            ChildFailed: it could not do it.
        """
        assert self._process.stdin is not None, "it was opened with a pipe"
        try:
            self._process.stdin.write(json.dumps(load) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise ChildFailed(f"{self.name} is gone: {self._last_words()}") from error
        reply = self._read()
        return reply["seconds"], reply["tokens"]

    def stop(self) -> None:
        """End it."""
        assert self._process.stdin is not None, "it was opened with a pipe"
        assert self._process.stdout is not None, "it was opened with a pipe"
        # What a child that died did not read is still to be written.
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(GOODBYE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> ChildProcess:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it, whatever happened."""
        self.stop()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None, "it was opened with a pipe"
        watchdog = threading.Timer(PATIENCE_S, self._process.kill)
        watchdog.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            raise ChildFailed(f"{self.name} ended: {self._last_words()}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _last_words(self) -> str:
        self._log.seek(0)
        return self._log.read()[-2000:]
