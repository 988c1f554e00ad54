r"""The engine alone, in this process: speed, sampling, pauses, prefix reuse, memory, growth.

    .venv/bin/python scripts/bench/engine.py                      # everything; many minutes
    .venv/bin/python scripts/bench/engine.py --parts sampling,pause --rounds 5 --json engine.json
    .venv/bin/python scripts/bench/engine.py --parts growth-rows,growth-length,growth-waiting \
        --plot docs/
    .venv/bin/python scripts/bench/engine.py --device cuda --parts decode,prefill,bandwidth

Run it with the environment that start.sh makes (.venv, or what NEODIM_VENV names). The engine is
driven step by step in a thread of its own: no Redis, no HTTP. What is compared takes turns,
A B A B, and ratios are of the same round (minimum, median, maximum). Absolute numbers are of this
machine and its load, which stand above the tables. Parts:

    memory          resident size with full rows, against weights + cache + 600 MiB
    decode          greedy tokens/s by batch
    prefill         prompt tokens/s of one long prompt
    paths           the path of the model's family against the general one
    batching        8 clients one by one against all at once
    sampling        tokens/s at 32 rows as a share of greedy's
    shaping         the same with penalties, options and excluded texts
    unused          time that these take for 32 rows that ask for none, as a share of a step
    pause           longest gap of 8 running rows while a long prompt arrives, in ordinary steps
    reuse           reading a prompt that shares 8/9 with an earlier one, as a share of the first
    chat            prompt tokens read in each of ten turns
    bandwidth       share of the limit that reading the weights at the speed of a copy sets
    growth-rows     step time by rows, 1 to 64
    growth-length   step time of 8 rows by what they hold
    growth-waiting  step time by requests that wait
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# A script's own directory is first on the path, where profile.py would hide Python's own.
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.decoding import bandwidth, batching, decode, paths, prefill, sampling
from bench.footprint import memory
from bench.growth import growth_length, growth_rows, growth_waiting
from bench.interruption import pause
from bench.line_chart import write_chart
from bench.loads import prompt_maker
from bench.model_choice import add_model_options, choose_model, described
from bench.options import add_effort_options, count, counts, names
from bench.prefixes import chat, reuse
from bench.report import Report, Table, add_report_options
from bench.setup import Setup
from bench.shaping import shaping, unused
from workers.launcher.errors import BadFlag
from workers.models.unusable import ModelUnusable

PARTS: Mapping[str, Callable[[Setup], Table]] = {
    # First, as the others leave memory behind.
    "memory": memory,
    "decode": decode,
    "prefill": prefill,
    "paths": paths,
    "batching": batching,
    "sampling": sampling,
    "shaping": shaping,
    "unused": unused,
    "pause": pause,
    "reuse": reuse,
    "chat": chat,
    "bandwidth": bandwidth,
    "growth-rows": growth_rows,
    "growth-length": growth_length,
    "growth-waiting": growth_waiting,
}
PLOTTED = {"growth-rows": "rows", "growth-length": "tokens", "growth-waiting": "waiting"}
"""Parts that make a chart, and the column of its horizontal axis."""


def main() -> None:
    """Measure what the command line asks for."""
    arguments = parse(sys.argv[1:])
    choice = choose_model(arguments)
    report = Report("engine", described(arguments, choice))
    setup = Setup(
        choice=choice,
        maker=prompt_maker(choice.source),
        rounds=arguments.rounds,
        batches=arguments.batches,
        prompt_tokens=arguments.prompt_tokens,
        new_tokens=arguments.new_tokens,
        long_prompt=arguments.long_prompt,
        interruption=arguments.interruption,
        filled=arguments.filled,
        waiting=arguments.waiting,
    )
    for name, measure in PARTS.items():
        if name in arguments.parts:
            table = measure(setup)
            report.add(table)
            if arguments.plot and name in PLOTTED:
                plot(table, arguments.plot)
    report.finish(arguments.json)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--parts",
        type=names(tuple(PARTS)),
        default=list(PARTS),
        help="parts to run, comma-separated (default: all)",
    )
    parser.add_argument(
        "--batches",
        type=counts,
        default=[1, 8, 32, 64],
        help="batch sizes of decode (default: 1,8,32,64)",
    )
    parser.add_argument(
        "--long-prompt",
        type=count,
        default=900,
        help="prompt tokens in prefill and reuse (default: 900)",
    )
    parser.add_argument(
        "--interruption",
        type=count,
        default=1000,
        help="tokens of the prompt that arrives in pause (default: 1000)",
    )
    parser.add_argument(
        "--filled",
        type=counts,
        default=[64, 256, 512, 1000, 1500, 2000],
        help="tokens that rows hold in growth-length",
    )
    parser.add_argument(
        "--waiting",
        type=counts,
        default=[1, 10, 100, 1000, 10_000],
        help="numbers of waiting requests in growth-waiting",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="DIRECTORY", help="write the growth parts as SVG there"
    )
    add_effort_options(parser)
    add_model_options(parser)
    add_report_options(parser)
    return parser.parse_args(words)


def plot(table: Table, directory: Path) -> None:
    """Write a table of growth as a chart of its median steps."""
    column = PLOTTED[table.name]
    points = [(_number(row[column]), _number(row["step ms median"])) for row in table.rows]
    file = directory / f"{table.name}.svg"
    write_chart(file, f"Step time: {table.note}", column, "ms per step", points)


def _number(cell: object) -> float:
    assert isinstance(cell, (int, float)), "these columns hold numbers"
    return float(cell)


if __name__ == "__main__":
    try:
        main()
    except (BadFlag, ModelUnusable) as error:
        sys.exit(str(error))
