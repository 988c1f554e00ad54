"""Memory that a process with a full cache takes, against weights, cache and what it may have."""

from __future__ import annotations

from bench.loads import requests_of
from bench.machine import memory_bytes
from bench.report import Row, Table
from bench.setup import Setup

ALLOWANCE_BYTES = 600 * 2**20
MIB = 2**20
SLOTS = 8
LENGTH = 512
NEW_TOKENS = 8


def memory(setup: Setup, max_length: int = LENGTH) -> Table:
    """Resident size once every row was full; first of all parts, as others leave memory behind."""
    engine = setup.engine(SLOTS, max_length=max_length)
    load = setup.maker.load(SLOTS, max_length - NEW_TOKENS, NEW_TOKENS, "memory")
    engine.run(requests_of(load))
    resident = memory_bytes("VmRSS")
    needed = engine.weights_bytes + engine.cache_bytes
    row: Row = {
        "resident MiB": resident / MIB,
        "anonymous MiB": memory_bytes("RssAnon") / MIB,
        "highest MiB": memory_bytes("VmHWM") / MIB,
        "weights MiB": engine.weights_bytes / MIB,
        "cache MiB": engine.cache_bytes / MIB,
        "beyond both MiB": (resident - needed) / MIB,
        "resident / limit": resident / (needed + ALLOWANCE_BYTES),
    }
    engine.stop()
    return Table(
        "memory",
        f"{SLOTS} rows of {max_length} tokens, all full; limit: both + 600 MiB",
        [row],
    )
