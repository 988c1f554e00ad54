"""The child's side of the line protocol: one JSON object a line, in on stdin and out on stdout.

The first line out says that the model is loaded and in which versions; then each line in is a load
and each line out what it took. Between lines the child is blocked in a read and costs nothing.
Uses nothing but the standard library, since it runs in the peers' environments too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Message = dict[str, Any]


def serve(load: Callable[[], Callable[[Message], int]], packages: tuple[str, ...]) -> None:
    """Load a model, then measure one load after the other until stdin ends.

    Args:
        load: loads the model; gives a function that runs a load and returns the number of tokens
            that it generated.
        packages: whose versions to report.
    """
    # What libraries print must not get between the lines, so stdout becomes a copy of stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    start = time.perf_counter()
    run = load()
    versions = {name: version(name) for name in packages}
    _write(answers, {"load_s": time.perf_counter() - start, "versions": versions})
    for line in sys.stdin:
        message = json.loads(line)
        start = time.perf_counter()
        n_tokens = run(message)
        _write(answers, {"seconds": time.perf_counter() - start, "tokens": n_tokens})


def _write(answers: Any, message: Message) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()
