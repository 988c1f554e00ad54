"""What is saved where prompts begin alike: a second prompt, and a chat turn by turn."""

from __future__ import annotations

import time

from bench.loads import GREEDY, requests_of
from bench.report import Row, Table
from bench.setup import Setup
from bench.spread import ratios, spread_of

TURNS = 10
TURN_TOKENS = 20
SLOTS = 8
SHARED_OF_NINE = 8


def reuse(setup: Setup) -> Table:
    """Reading a prompt of which eight ninths were read before, against reading the first."""
    engine = setup.engine(SLOTS)
    n, n_shared = setup.long_prompt, setup.long_prompt * SHARED_OF_NINE // 9
    found: dict[str, list[float]] = {"first": [], "second": []}
    n_read: dict[str, int] = {}
    for number in range(-1, setup.rounds):
        first = setup.maker.prompt(n, ("first", number))
        second = first[:n_shared] + setup.maker.prompt(n - n_shared, ("second", number))
        for name, prompt in (("first", first), ("second", second)):
            (fields,) = requests_of(setup.maker.load_of([prompt], 1))
            start = time.perf_counter()
            _, n_read[name] = engine.read_of_prompt(fields)
            if number >= 0:
                found[name].append(time.perf_counter() - start)
    engine.stop()
    rows: list[Row] = [
        {
            "prompt": name,
            "tokens": n,
            "read": n_read[name],
            **spread_of(seconds).columns("seconds"),
            **spread_of(ratios(seconds, found["first"])).columns("of first"),
        }
        for name, seconds in found.items()
    ]
    return Table("reuse", f"{n_shared} of {n} prompt tokens are the first's; to one token", rows)


def chat(setup: Setup) -> Table:
    """Prompt tokens read in each turn of a chat whose prompt is all that was said before."""
    engine = setup.engine(SLOTS)
    text = setup.maker.text(setup.maker.prompt(TURN_TOKENS, "chat"))
    rows: list[Row] = []
    for turn in range(1, TURNS + 1):
        request, n_read = engine.read_of_prompt(
            {
                **GREEDY,
                "prompt": text,
                "generated_tokens_count": TURN_TOKENS,
                "max_total_tokens": engine.max_length,
            }
        )
        n_prompt = len(request.generation.fitted.input_ids)
        rows.append({"turn": turn, "prompt": n_prompt, "read": n_read, "share": n_read / n_prompt})
        said = setup.maker.text(setup.maker.prompt(TURN_TOKENS, ("turn", turn)))
        text = engine.output_text(request) + said
    engine.stop()
    note = f"each turn adds {TURN_TOKENS} tokens of the model's and {TURN_TOKENS} of the user's"
    return Table("chat", note, rows)
