"""The machine that a bench runs on, as far as its numbers depend on it."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from workers.launcher.machine import available_cores

PACKAGES = ("neodim", "torch", "transformers", "celery", "redis", "gunicorn")
CPU_INFO = Path("/proc/cpuinfo")
STATUS = Path("/proc/self/status")
COPIED_BYTES = {"cpu": 2**28, "cuda": 2**32}
"""Far beyond any cache."""

COPIES = 4


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, card, and the versions of what computes."""
    return {
        "cpu": cpu_model(CPU_INFO),
        "cores": available_cores(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "has bfloat16 arithmetic": has_bfloat16(),
        "torch threads": torch.get_num_threads(),
        "memory GiB": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "card": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def cpu_model(info: Path) -> str:
    """The processor's name in a file like Linux's /proc/cpuinfo."""
    try:
        lines = info.read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 faster than by converting it."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def copy_bandwidth(device: str) -> float:
    """Bytes per second that a large copy reads and writes, both counted; the best of a few."""
    source = torch.ones(COPIED_BYTES[device], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best_s = float("inf")
    for _ in range(COPIES):
        start = time.perf_counter()
        target.copy_(source)
        if device == "cuda":
            torch.cuda.synchronize()
        best_s = min(best_s, time.perf_counter() - start)
    return 2 * source.numel() / best_s


def load_average() -> list[float]:
    """Processes that ran or wanted to, over the last 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def memory_bytes(name: str, status: Path = STATUS) -> int:
    """A figure of a process's memory, such as `VmRSS` or `RssAnon`, in bytes.

    Raises:
        ValueError: the system does not say.
    """
    for line in status.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"{status} has no {name}")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
