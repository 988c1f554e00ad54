"""Our engine against others, on the same loads in one run, in turn: A B A B ...

    .venv/bin/python scripts/bench/peers.py ours vllm transformers llama
    .venv/bin/python scripts/bench/peers.py general transformers --batches 8,32 --parts decode

Run it with the environment that start.sh makes (.venv, or what NEODIM_VENV names). The first
program named is the base: the tables say how many times as fast it is as each of the others, round
by round (minimum, median, maximum), so above 1 it is the faster one. Programs:

    ours          the engine as the service runs it
    general       the engine on the path that all model families share
    transformers  `generate` with one static batch, in our own environment
    vllm          vLLM's CPU build; the first use installs it (3 GB), each load takes minutes
    llama         llama.cpp over its own 4-bit file, which is less to read than the others' weights;
                  the first use compiles it

Each is a process that loads the model once and then waits, blocked, for its turn. All get the same
token ids, generate greedily and do not stop at an end of text; ours gets them as text, and its time
includes tokenising and spelling.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

# A script's own directory is first on the path, where profile.py would hide Python's own.
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.child_process import ChildCommand, ChildFailed, ChildProcess
from bench.loads import Load, PromptMaker, prompt_maker, requests_of
from bench.model_choice import ModelChoice, add_model_options, choose_model, described
from bench.options import add_effort_options, counts, names
from bench.peer_environments import peer_python
from bench.report import Report, Row, Table, add_report_options
from bench.rounds import Measure, alternate
from bench.settings import cache_directory
from bench.spread import ratios, spread_of
from workers.launcher.errors import BadFlag
from workers.launcher.machine import available_cores
from workers.launcher.model_files import find_model

PROGRAMS = ("ours", "general", "transformers", "vllm", "llama")
PARTS = ("decode", "prefill")
VLLM_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "HF_HUB_OFFLINE": "1",
}


def main() -> None:
    """Measure what the command line asks for."""
    arguments = parse(sys.argv[1:])
    choice = choose_model(arguments)
    if arguments.gguf:
        choice = replace(choice, gguf=arguments.gguf)
    report = Report("peers", described(arguments, choice))
    with ExitStack() as stack:
        children = {
            name: stack.enter_context(ChildProcess(name, child_command(name, choice, arguments)))
            for name in arguments.programs
        }
        report.add(Table("programs", "as they are loaded", program_rows(children)))
        maker = prompt_maker(choice.source)
        if "decode" in arguments.parts:
            report.add(decode_table(children, maker, arguments))
        if "prefill" in arguments.parts:
            report.add(prefill_table(children, maker, arguments))
    report.finish(arguments.json)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "programs", nargs="+", choices=PROGRAMS, help="at least two; the first is the base"
    )
    parser.add_argument("--parts", type=names(PARTS), default=PARTS, help="default: all")
    parser.add_argument(
        "--batches", type=counts, default=[1, 8, 32, 64], help="batch sizes (default: 1,8,32,64)"
    )
    parser.add_argument("--long-prompt", type=int, default=900, help="tokens of prefill's prompt")
    parser.add_argument("--gguf", help="file for llama; default: the one that --model comes from")
    parser.add_argument(
        "--environments",
        type=Path,
        default=cache_directory() / "neodim-peers",
        help="where peers are installed, each in a folder of its name; default: %(default)s",
    )
    parser.add_argument(
        "--wait-policy",
        choices=("active", "passive"),
        help="OMP_WAIT_POLICY of all programs: whether idle OpenMP threads spin; default: not set",
    )
    add_effort_options(parser)
    add_model_options(parser)
    add_report_options(parser)
    arguments = parser.parse_args(words)
    if len(set(arguments.programs)) < max(2, len(arguments.programs)):
        parser.error("name two different programs or more")
    if arguments.device != "cpu" and {"vllm", "llama"} & set(arguments.programs):
        parser.error("vllm and llama are installed for the CPU only")
    return arguments


def child_environment_of(name: str, arguments: argparse.Namespace) -> dict[str, str]:
    """What one of the programs finds in its environment beside ours."""
    policy = {"OMP_WAIT_POLICY": arguments.wait_policy} if arguments.wait_policy else {}
    return {**policy, **(VLLM_ENVIRONMENT if name == "vllm" else {})}


def child_command(name: str, choice: ModelChoice, arguments: argparse.Namespace) -> ChildCommand:
    """How to start one of the programs.

    Raises:
        BadFlag: llama has no file.
    """
    common = [choice.source, "--precision", choice.precision]
    own = [*common, "--device", choice.device]
    slots = ["--slots", str(max(arguments.batches))]
    environment = child_environment_of(name, arguments)
    if name == "ours":
        return ChildCommand(sys.executable, "ours", [*own, *slots], environment)
    if name == "general":
        return ChildCommand(sys.executable, "ours", [*own, *slots, "--general"], environment)
    if name == "transformers":
        return ChildCommand(sys.executable, "generate", own, environment)
    python = peer_python(name, arguments.environments)
    if name == "vllm":
        return ChildCommand(python, "vllm", [*common, *slots], environment)
    file = str(gguf_file(choice))
    threads = ["--threads", str(available_cores())]
    return ChildCommand(python, "llama", [file, *threads], environment)


def gguf_file(choice: ModelChoice) -> Path:
    """The file that llama.cpp runs.

    Raises:
        BadFlag: the model is not known to come from one.
    """
    if choice.gguf is None:
        raise BadFlag("--gguf", None, "is needed for llama where --model is no .gguf file")
    return Path(find_model(str(Path(choice.gguf).resolve())).source)


def program_rows(children: Mapping[str, ChildProcess]) -> list[Row]:
    """How long each took to load, and its versions."""
    return [
        {"program": name, "load s": child.ready["load_s"], **child.ready["versions"]}
        for name, child in children.items()
    ]


def decode_table(
    children: Mapping[str, ChildProcess], maker: PromptMaker, arguments: argparse.Namespace
) -> Table:
    """Generated tokens per second, by batch size."""
    rows: list[Row] = []
    for batch in arguments.batches:

        def load(number: int, batch: int = batch) -> Load:
            return maker.load(batch, arguments.prompt_tokens, arguments.new_tokens, number)

        found = alternate(
            {
                name: measure(child, load, batch * arguments.new_tokens)
                for name, child in children.items()
            },
            arguments.rounds,
        )
        rows += ratio_rows(found, {"batch": batch})
    note = f"tokens/s with {arguments.prompt_tokens} + {arguments.new_tokens} tokens a row"
    return Table("decode", note, rows)


def prefill_table(
    children: Mapping[str, ChildProcess], maker: PromptMaker, arguments: argparse.Namespace
) -> Table:
    """Prompt tokens per second of one long prompt."""
    n_tokens = arguments.long_prompt
    found = alternate(
        {
            name: measure(child, lambda number: maker.load(1, n_tokens, 1, number), n_tokens)
            for name, child in children.items()
        },
        arguments.rounds,
    )
    note = f"tokens/s of one prompt of {n_tokens}, to its first generated token"
    return Table("prefill", note, ratio_rows(found, {"batch": 1}))


def measure(child: ChildProcess, load: Any, n_tokens: int) -> Measure:
    """A measurement of a child: tokens per second, of those that count.

    Args:
        child: what is measured.
        load: makes the load of a round.
        n_tokens: that count in it.
    """

    def tokens_per_s(number: int) -> float:
        asked: Load = load(number)
        message = {
            "prompts": asked.prompts,
            "new_tokens": asked.new_tokens,
            "requests": requests_of(asked),
        }
        seconds, n_made = child.run(message)
        assert n_made == asked.n_new_tokens, f"{child.name} made {n_made} tokens"
        return n_tokens / seconds

    return tokens_per_s


def ratio_rows(found: Mapping[str, list[float]], start: Row) -> list[Row]:
    """Each program's values, and how many times as fast the first one is."""
    base = next(iter(found))
    return [
        {
            **start,
            "program": name,
            **spread_of(values).columns("tokens/s"),
            **spread_of(ratios(found[base], values)).columns(f"{base} is x times"),
        }
        for name, values in found.items()
    ]


if __name__ == "__main__":
    try:
        main()
    except (BadFlag, ChildFailed) as error:
        sys.exit(str(error))
