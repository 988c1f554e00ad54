"""What this host gives to computing."""

from __future__ import annotations

import os
import resource
from pathlib import Path

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
OPEN_FILES = 65536


def available_cores(quota: Path = CPU_QUOTA) -> int:
    """Cores that this process may use: by affinity, and by the quota of its container.

    Args:
        quota: cgroup 2's file, "max 100000" or "200000 100000" (time, period; microseconds).
    """
    n_cores = len(os.sched_getaffinity(0))
    try:
        time, period = quota.read_text().split()
        return max(1, min(n_cores, int(time) // int(period)))
    except (OSError, ValueError):
        return n_cores


def allow_open_files() -> None:
    """Raise the number of files that processes may open: each stream of a client takes two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
