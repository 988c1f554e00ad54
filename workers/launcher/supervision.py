"""Runs supervisor as a child: hands on signals and output, and starts it again if it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from workers.launcher.announcement import Announcement, announce
from workers.launcher.errors import StartRefused
from workers.launcher.part_log import PartEnded, follow
from workers.launcher.processes import BAD_SETTINGS_EXIT_CODE

LONGEST_DELAY_S = 30
DEATHS_WORTH_A_WORD = 3
SUPERVISOR_REFUSES = 2
"""Exit status of supervisor when it cannot use its configuration."""


def say(line: str) -> None:
    """Tell the user one thing."""
    print(line, flush=True)


@dataclass(frozen=True)
class Plan:
    """What is to be run.

    Args:
        command: of supervisor.
        environment: of supervisor and of everything that it starts.
        directory: that they run in.
        prepare: called before supervisor is started, and writes what it and its parts read.
        part_log: supervisor's own log, which `prepare` leaves empty.
        announcement: for when the service is ready.
    """

    command: list[str]
    environment: Mapping[str, str]
    directory: str
    prepare: Callable[[], None]
    part_log: Path
    announcement: Announcement


class Supervision:
    """One service from its start to its end.

    Args:
        plan: what is to be run.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._exit_code = 0
        self._deaths: dict[str, int] = {}

    def run(self) -> int:
        """Keep the service running until a signal, or bad settings, end it.

        Returns:
            The exit status for the launcher.

        Raises:
            StartRefused: supervisor does not take its configuration.
        """
        self._take_signals()
        self._in_background(self._announce)
        delay_s = 1
        while not self._stopping.is_set():
            status = self._run_once()
            if self._stopping.is_set():
                break
            if status == SUPERVISOR_REFUSES:
                raise StartRefused("supervisor does not take its configuration (see above)")
            say(f"supervisor ended (status {status}); everything is started again in {delay_s} s")
            self._stopping.wait(delay_s)
            delay_s = min(2 * delay_s, LONGEST_DELAY_S)
        say("Stopped")
        return self._exit_code

    def stop(self) -> None:
        """End everything that was started, in order, once."""
        if not self._stopping.is_set():
            self._stopping.set()
            say("Stopping API, worker and queue (may take some seconds)")
            self._end_supervisor()

    def _run_once(self) -> int:
        """Run supervisor until it ends, and return its status."""
        self._plan.prepare()
        ended = threading.Event()
        process = subprocess.Popen(
            self._plan.command,
            env=dict(self._plan.environment),
            cwd=self._plan.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A Ctrl-C in the terminal then reaches the launcher alone, which hands it on once.
            start_new_session=True,
        )
        self._process = process
        if self._stopping.is_set():
            self._end_supervisor()
        assert process.stdout is not None
        relayed = self._in_background(relay, process.stdout)
        watched = self._in_background(self._watch, ended)
        status = process.wait()
        ended.set()
        watched.join()
        # A process that outlives supervisor may hold the pipe open for a while.
        relayed.join(timeout=1)
        return status

    def _end_supervisor(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def _take_signals(self) -> None:
        def on_signal(number: int, frame: FrameType | None) -> None:
            self.stop()

        signal.signal(signal.SIGINT, on_signal)
        signal.signal(signal.SIGTERM, on_signal)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, on_signal)

    def _announce(self) -> None:
        if announce(self._plan.announcement, self._stopping):
            self._ready.set()

    def _watch(self, ended: threading.Event) -> None:
        for part in follow(self._plan.part_log, ended):
            if not self._stopping.is_set():
                self._tell(part)

    def _tell(self, part: PartEnded) -> None:
        if part.exit_code == BAD_SETTINGS_EXIT_CODE:
            self._exit_code = BAD_SETTINGS_EXIT_CODE
            say(f"The {part.name} cannot work with these settings; it says why above")
            self.stop()
            return
        say(f"{part.name} ended ({part.how}); it is started again")
        self._deaths[part.name] = self._deaths.get(part.name, 0) + 1
        if self._deaths[part.name] == DEATHS_WORTH_A_WORD and not self._ready.is_set():
            say(f"{part.name} keeps ending while it starts; it is tried again ever more slowly")

    @staticmethod
    def _in_background(target: Callable[..., None], *args: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=args, daemon=True)
        thread.start()
        return thread


def relay(source: IO[bytes], target: int = 1) -> None:
    """Copy what the processes write to our own output, until they have all closed theirs.

    They write to a pipe instead of our output, which may be a file that each would overwrite
    the other's lines in, or a socket that supervisor cannot open.
    """
    is_open = True
    while chunk := os.read(source.fileno(), 65536):
        while is_open and chunk:
            try:
                chunk = chunk[os.write(target, chunk) :]
            except OSError:
                # Nobody reads any more; the processes must not block on that.
                is_open = False
    source.close()
