"""Where a step's time goes: by file, by function, and by operation of PyTorch.

    .venv/bin/python scripts/bench/profile.py --rows 32
    .venv/bin/python scripts/bench/profile.py --rows 8 --mix playground --top 30
    .venv/bin/python scripts/bench/profile.py --rows 8 --prompt-tokens 900 --general

Run it with the environment that start.sh makes (.venv, or what NEODIM_VENV names). So many rows
run, and steps are watched in which each gets one token. Three times over: with nothing watching
(step), with Python's profiler (files, functions) and with PyTorch's (operations). A profiler slows
down what it watches, many small calls most: the table `step` says by how much. In files and
functions an operation counts for the function that calls it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# A script's own directory is first on the path, where this file would hide Python's own `profile`.
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import torch

from bench.loads import SAMPLERS, prompt_maker, requests_of
from bench.model_choice import add_model_options, choose_model, described
from bench.options import count
from bench.our_engine import OurEngine
from bench.report import Report, Row, Table, add_report_options
from bench.spread import spread_of
from bench.step_profile import Place, by_file, profile_calls, short_name
from workers.launcher.errors import BadFlag
from workers.models.unusable import ModelUnusable


def main() -> None:
    """Measure what the command line asks for."""
    arguments = parse(sys.argv[1:])
    choice = choose_model(arguments)
    report = Report("profile", described(arguments, choice))
    engine = OurEngine(choice, slots=arguments.rows, is_general=arguments.general)
    n_steps, top = arguments.steps, arguments.top
    maker = prompt_maker(choice.source)
    load = maker.load(arguments.rows, arguments.prompt_tokens, 3 * n_steps + 8, "profile")
    rows = engine.start_rows(requests_of(load, SAMPLERS[arguments.mix]))
    plain = spread_of(engine.do(lambda: [engine.step() for _ in range(n_steps)]))
    seconds, watched_s = watch_python(engine, n_steps)
    operations = watch_torch(engine, n_steps)
    engine.abandon(rows)
    report.add(step_table(plain.columns("step ms"), watched_s / n_steps / plain.median))
    files = {name: part_s / n_steps for name, part_s in by_file(seconds).items()}
    report.add(share_table("files", "by file", files, top))
    functions = {shown(place): part_s / n_steps for place, part_s in seconds.items()}
    report.add(share_table("functions", "by function, without those it calls", functions, top))
    report.add(share_table("operations", "PyTorch's own, without those they call", operations, top))
    report.finish(arguments.json)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=count, default=32, help="sequences at once (default: %(default)s)"
    )
    parser.add_argument(
        "--steps", type=count, default=16, help="steps to measure (default: %(default)s)"
    )
    parser.add_argument(
        "--prompt-tokens", type=count, default=10, help="of each (default: %(default)s)"
    )
    parser.add_argument(
        "--mix",
        choices=tuple(SAMPLERS),
        default="greedy",
        help="sampling of the rows (default: greedy)",
    )
    parser.add_argument(
        "--general", action="store_true", help="take the path that all model families share"
    )
    parser.add_argument(
        "--top", type=count, default=20, help="lines of each table (default: %(default)s)"
    )
    add_model_options(parser)
    add_report_options(parser)
    return parser.parse_args(words)


def watch_python(engine: OurEngine, n_steps: int) -> tuple[dict[Place, float], float]:
    """Seconds by function, and seconds in all, of some steps."""
    total = [0.0]

    def work() -> None:
        total[0] = sum(engine.step() for _ in range(n_steps))

    return engine.do(lambda: profile_calls(work)), total[0]


def watch_torch(engine: OurEngine, n_steps: int) -> dict[str, float]:
    """Seconds of a step by operation of PyTorch; on a card, the card's."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)

    def watched() -> Any:
        with torch.profiler.profile(activities=activities) as profiler:
            for _ in range(n_steps):
                engine.step()
        return profiler

    own_us: Callable[[Any], float] = (
        (lambda event: event.self_device_time_total)
        if engine.device_type == "cuda"
        else (lambda event: event.self_cpu_time_total)
    )
    return {event.key: own_us(event) / 1e6 / n_steps for event in engine.do(watched).key_averages()}


def step_table(step: Mapping[str, float], slowed_down: float) -> Table:
    """The step itself."""
    row: Row = {
        **{name: value * 1000 for name, value in step.items()},
        "x as long under Python's profiler": slowed_down,
    }
    return Table("step", "with nothing watching", [row])


def share_table(name: str, note: str, seconds: Mapping[str, float], top: int) -> Table:
    """The costliest entries, and what share of all they are."""
    total = sum(seconds.values())
    rows: list[Row] = [
        {"what": what, "ms per step": part_s * 1000, "share": part_s / total}
        for what, part_s in sorted(seconds.items(), key=lambda entry: -entry[1])[:top]
    ]
    return Table(name, note, rows)


def shown(place: Place) -> str:
    """A function as a table shows it."""
    file, line, function = place
    return f"{short_name(file)}:{line} {function}"


if __name__ == "__main__":
    try:
        main()
    except (BadFlag, ModelUnusable) as error:
        sys.exit(str(error))
