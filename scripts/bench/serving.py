"""What the service's clients see, and what HTTP, Redis and Celery add to the engine's own time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from bench.child_process import ChildProcess
from bench.http_client import Answer, duration_s, generate, run_clients, stream
from bench.loads import SAMPLERS, Fields, PromptMaker, requests_of
from bench.report import Row, Table
from bench.rounds import alternate, comparison
from bench.service import Service
from bench.spread import percentile

Request = Mapping[str, object]


def clients_table(
    service: Service,
    maker: PromptMaker,
    concurrency: Sequence[int],
    mix: str,
    sizes: tuple[int, int, int],
) -> Table:
    """Throughput, time to first text and time between tokens, by concurrent clients.

    Args:
        service: is asked.
        maker: makes the prompts.
        concurrency: clients at once.
        mix: name of sampling settings, which the requests take in turn.
        sizes: prompt tokens, new tokens, and requests of each client.
    """
    prompt_tokens, new_tokens, n_each = sizes
    rows: list[Row] = []
    for n_clients in concurrency:
        # A service that runs already may still hold the prompts of an earlier run.
        seed = time.time_ns()
        shares = client_requests(maker, n_clients, n_each, (prompt_tokens, new_tokens), mix, seed)
        run_clients(service, client_requests(maker, 1, 1, (prompt_tokens, 1), mix, "first"), stream)
        rows.append({"clients": n_clients, **seen(run_clients(service, shares, stream))})
    note = f"{mix}, {prompt_tokens} + {new_tokens} tokens, {n_each} requests of each client"
    return Table("clients", note, rows)


def seen(answers: Sequence[Answer]) -> Row:
    """Throughput, and percentiles over all requests or over all gaps, in milliseconds."""
    per_token = [each.token_s for each in answers if each.token_s is not None]
    values = {
        "first text": [each.first_s for each in answers],
        "per token": per_token,
        "between events": [gap for each in answers for gap in each.gaps_s],
    }
    row: dict[str, float | int | str | None] = {
        "requests": len(answers),
        "tokens/s": sum(each.n_tokens for each in answers) / duration_s(answers),
    }
    for name, seconds in values.items():
        for percent in (50, 99):
            found = percentile(seconds, percent) * 1000 if seconds else None
            row[f"{name} p{percent} ms"] = found
    return row


def share_table(
    service: Service,
    alone: ChildProcess,
    maker: PromptMaker,
    n_clients: int,
    sizes: tuple[int, int, int],
    rounds: int,
) -> Table:
    """Throughput of clients of the service, against the engine alone with the same requests.

    Args:
        service: is asked through `/generate`.
        alone: an engine with as many slots.
        maker: makes the prompts.
        n_clients: clients at once.
        sizes: prompt tokens, new tokens, and requests of each client.
        rounds: that count.
    """
    prompt_tokens, new_tokens, n_each = sizes

    def shares(number: int, who: str) -> list[list[Request]]:
        lengths = (prompt_tokens, new_tokens)
        return client_requests(maker, n_clients, n_each, lengths, "greedy", (who, number))

    def served(number: int) -> float:
        answers = run_clients(service, shares(number, "round"), generate)
        return sum(each.n_tokens for each in answers) / duration_s(answers)

    def engine(number: int) -> float:
        requests = [request for share in shares(number, "round") for request in share]
        seconds, n_tokens = alone.run({"requests": requests})
        return n_tokens / seconds

    found = alternate({"engine": engine, "service": served}, rounds)
    note = f"{n_clients} clients, {prompt_tokens} + {new_tokens} tokens, {n_each} requests each"
    return Table("share", note, comparison(found, "engine", "tokens/s"))


def overhead_table(
    service: Service, alone: ChildProcess, maker: PromptMaker, prompt_tokens: int, n_calls: int
) -> Table:
    """What one idle client's `/generate` of one token takes beyond the engine's own time."""

    def requests(number: int) -> list[Request]:
        return list(requests_of(maker.load(1, prompt_tokens, 1, ("idle", number))))

    found = alternate(
        {
            "engine": lambda n: alone.run({"requests": requests(n)})[0],
            "service": lambda n: duration_s(run_clients(service, [requests(n)], generate)),
        },
        n_calls,
        settle_s=0.02,
    )
    beyond = [s - e for s, e in zip(found["service"], found["engine"], strict=True)]
    rows: list[Row] = [
        {
            "what": name,
            "p50 ms": percentile(values, 50) * 1000,
            "p99 ms": percentile(values, 99) * 1000,
        }
        for name, values in {**found, "service - engine, call by call": beyond}.items()
    ]
    return Table("overhead", f"one client, {prompt_tokens} + 1 tokens, {n_calls} calls", rows)


def memory_table(service: Service) -> Table:
    """Resident memory of each process of a service."""
    found = service.resident_bytes()
    rows: list[Row] = [
        {"process": name, "resident MiB": size / 2**20} for name, size in found.items()
    ]
    return Table("memory", "processes of the service, after all else", rows)


def client_requests(
    maker: PromptMaker,
    n_clients: int,
    n_each: int,
    lengths: tuple[int, int],
    mix: str,
    seed: object = "clients",
) -> list[list[Request]]:
    """The requests of each client, no two with the same prompt."""
    samplers: Sequence[Fields] = SAMPLERS[mix]
    load = maker.load(n_clients * n_each, *lengths, (seed, n_clients))
    requests = requests_of(load, samplers)
    return [list(requests[client::n_clients]) for client in range(n_clients)]
