from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from workers.launcher.processes import bound_command

CHILD = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def test_a_bound_process_ends_when_its_starter_is_killed() -> None:
    # The pipe ends only when the child, which holds its other end, has ended.
    command = bound_command([sys.executable, "-c", CHILD], sys.executable)
    starter = f"import subprocess, time; subprocess.Popen({command!r}); time.sleep(60)"

    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.kill()
        rest = process.stdout.read()

    assert rest == b""
    assert not Path(f"/proc/{child}/exe").exists()


def test_a_bound_process_is_the_command_itself_with_its_exit_status() -> None:
    script = "import os, sys; sys.exit(7)"

    ended = subprocess.run(bound_command([sys.executable, "-c", script], sys.executable))

    assert ended.returncode == 7
