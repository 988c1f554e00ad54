"""Becomes a command that the kernel ends when the process that started it is gone.

Run as a file, without the rest of the project, so that it costs a few milliseconds:
`python -I -S bound_process.py COMMAND ARGUMENT...`. After a `kill -9` of the launcher or of
supervisor nothing is left behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Number of prctl's option, from linux/prctl.h."""


def main(command: list[str]) -> None:
    """Bind this process to its parent's life, then become the command."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the process that started this one is gone")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
