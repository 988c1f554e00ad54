r"""The service over HTTP: throughput, first text, inter-token times, what it adds to the engine.

    .venv/bin/python scripts/bench/serve.py                    # everything, on its own service
    .venv/bin/python scripts/bench/serve.py --parts clients --concurrency 1,8,32 --mix mix
    .venv/bin/python scripts/bench/serve.py --parts clients --url http://127.0.0.1:8787 \
        --model /models/the-served-one

Run it with the environment that start.sh makes (.venv, or what NEODIM_VENV names). Without --url it
starts a service with a data directory of its own and ends it afterwards. Parts:

    clients   by concurrent clients that each follow their job's events: tokens/s; time to the first
              text; time per token behind it (over requests); gaps between events (over all of them:
              a worker sends what is new twenty times a second, so an event may hold several tokens)
    share     clients of /generate through HTTP, Redis and Celery against the engine alone, with the
              same requests, in turn: A B A B
    overhead  one idle client's /generate of one token against the engine's own time for it, in turn
    memory    resident size of the service's processes, after the parts above
    queue     time to create and to claim a job in a Redis where others wait, 1 to 10,000

The engine alone is a process of its own with as many slots, idle while the service works.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

# A script's own directory is first on the path, where profile.py would hide Python's own.
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.child_process import ChildCommand, ChildFailed, ChildProcess
from bench.loads import SAMPLERS, PromptMaker, prompt_maker
from bench.model_choice import ModelChoice, add_model_options, choose_model, described
from bench.options import add_effort_options, count, counts, names
from bench.queueing import queue_table
from bench.report import Report, add_report_options
from bench.service import Service, ServiceFailed, running_service
from bench.serving import clients_table, memory_table, overhead_table, share_table
from workers.launcher.errors import BadFlag

PARTS = ("clients", "share", "overhead", "memory", "queue")
WITH_ENGINE = {"share", "overhead"}
WITH_SERVICE = {"clients", "share", "overhead", "memory"}


def main() -> None:
    """Measure what the command line asks for."""
    arguments = parse(sys.argv[1:])
    choice = choose_model(arguments)
    report = Report("serve", described(arguments, choice))
    maker = prompt_maker(choice.source)
    if WITH_SERVICE & set(arguments.parts):
        with service_of(arguments, choice) as service:
            measure_service(service, choice, maker, arguments, report)
    if "queue" in arguments.parts:
        report.add(queue_table(arguments.waiting))
    report.finish(arguments.json)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--parts",
        type=names(PARTS),
        default=list(PARTS),
        help="parts to run, comma-separated (default: all)",
    )
    parser.add_argument(
        "--url",
        help="measure this running service instead of one of its own; --model names its model",
    )
    parser.add_argument(
        "--concurrency",
        type=counts,
        default=[1, 8, 32],
        help="numbers of clients in part clients (default: 1,8,32)",
    )
    parser.add_argument(
        "--mix",
        choices=tuple(SAMPLERS),
        default="greedy",
        help="sampling of part clients (default: greedy)",
    )
    parser.add_argument(
        "--clients", type=count, default=32, help="clients of part share (default: 32)"
    )
    parser.add_argument(
        "--requests", type=count, default=2, help="requests of each client (default: 2)"
    )
    parser.add_argument(
        "--calls", type=count, default=200, help="calls of part overhead (default: 200)"
    )
    parser.add_argument(
        "--slots",
        type=count,
        default=32,
        help="sequences at once, of the service and of the engine alone (default: 32)",
    )
    parser.add_argument(
        "--waiting",
        type=counts,
        default=[1, 10, 100, 1000, 10_000],
        help="queue lengths of part queue",
    )
    add_effort_options(parser)
    add_model_options(parser)
    add_report_options(parser)
    return parser.parse_args(words)


@contextmanager
def service_of(arguments: argparse.Namespace, choice: ModelChoice) -> Iterator[Service]:
    """The service that is named, else one of our own."""
    if arguments.url is None:
        with running_service(choice, arguments.slots) as service:
            yield service
        return
    parts = urlsplit(arguments.url)
    if parts.scheme != "http" or parts.hostname is None:
        raise BadFlag("--url", arguments.url, "is no address; allowed: http://host:port")
    yield Service(parts.hostname, parts.port or 80, None)


def measure_service(
    service: Service,
    choice: ModelChoice,
    maker: PromptMaker,
    arguments: argparse.Namespace,
    report: Report,
) -> None:
    """The parts that need a service."""
    sizes = (arguments.prompt_tokens, arguments.new_tokens, arguments.requests)
    parts = arguments.parts
    if "clients" in parts:
        report.add(clients_table(service, maker, arguments.concurrency, arguments.mix, sizes))
    if WITH_ENGINE & set(parts):
        with ChildProcess("engine", engine_command(choice, arguments.slots)) as alone:
            if "share" in parts:
                n_clients, rounds = arguments.clients, arguments.rounds
                report.add(share_table(service, alone, maker, n_clients, sizes, rounds))
            if "overhead" in parts:
                n_calls = arguments.calls
                report.add(overhead_table(service, alone, maker, sizes[0], n_calls))
    if "memory" in parts:
        report.add(memory_table(service))


def engine_command(choice: ModelChoice, slots: int) -> ChildCommand:
    """How to start the engine alone."""
    own = [choice.source, "--precision", choice.precision, "--device", choice.device]
    return ChildCommand(sys.executable, "ours", [*own, "--slots", str(slots)])


if __name__ == "__main__":
    try:
        main()
    except (BadFlag, ChildFailed, ServiceFailed) as error:
        sys.exit(str(error))
