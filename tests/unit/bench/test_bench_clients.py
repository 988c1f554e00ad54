from __future__ import annotations

import pytest
from bench.http_client import Answer, duration_s, read_events
from bench.serving import seen
from bench.step_profile import by_file, own_seconds, profile_calls, short_name

STREAM = [
    b":\n",
    b"\n",
    b"id: 1-0\n",
    b"event: state\n",
    b'data: {"state": "running"}\n',
    b"\n",
    b"id: 2-0\n",
    b"event: delta\n",
    b'data: {"index": 0, "text": "a: b"}\n',
    b"\n",
]


def test_events_are_read_with_their_kinds_and_comments_are_none() -> None:
    assert list(read_events(iter(STREAM))) == [
        ("state", '{"state": "running"}'),
        ("delta", '{"index": 0, "text": "a: b"}'),
    ]


def test_answer_knows_first_text_gaps_and_time_per_token() -> None:
    answer = Answer(start_s=10.0, events_s=(10.5, 10.6, 11.5), end_s=11.6, n_tokens=11)

    assert answer.first_s == pytest.approx(0.5)
    assert answer.gaps_s == pytest.approx([0.1, 0.9])
    assert answer.token_s == pytest.approx(0.1)


def test_answer_that_came_at_once_has_no_time_per_token() -> None:
    answer = Answer(start_s=1.0, events_s=(), end_s=3.0, n_tokens=5)

    assert (answer.first_s, answer.gaps_s, answer.token_s) == (2.0, [], None)


def test_throughput_is_of_all_clients_from_first_question_to_last_answer() -> None:
    answers = [Answer(0.0, (0.5, 1.0), 1.0, 10), Answer(1.0, (2.0, 4.0), 4.0, 30)]

    row = seen(answers)

    assert duration_s(answers) == 4.0
    assert row["tokens/s"] == 10.0
    assert row["requests"] == 2
    assert row["first text p50 ms"] == 750.0


def test_time_of_builtins_belongs_to_their_callers() -> None:
    ours, caller, builtin = ("a.py", 1, "f"), ("a.py", 9, "g"), ("~", 0, "<built-in matmul>")
    stats = {
        ours: (1, 1, 0.5, 2.5, {}),
        caller: (1, 1, 0.25, 0.25, {}),
        builtin: (3, 3, 3.0, 3.0, {ours: (2, 2, 2.0, 2.0), caller: (1, 1, 1.0, 1.0)}),
    }

    assert own_seconds(stats) == {ours: 2.5, caller: 1.25}
    assert by_file({ours: 2.5, ("b.py", 1, "h"): 4.0, caller: 1.25}) == {"b.py": 4.0, "a.py": 3.75}


def test_time_of_operations_goes_through_the_registry_to_who_asks_for_them() -> None:
    ours, other = ("a.py", 1, "f"), ("b.py", 1, "g")
    registry, builtin = ("/x/torch/_ops.py", 5, "__call__"), ("~", 0, "<built-in linear>")
    stats = {
        ours: (1, 1, 0.0, 3.0, {}),
        other: (1, 1, 0.0, 1.0, {}),
        registry: (4, 4, 0.0, 4.0, {ours: (3, 3, 0.0, 3.0), other: (1, 1, 0.0, 1.0)}),
        builtin: (4, 4, 4.0, 4.0, {registry: (4, 4, 4.0, 4.0)}),
    }

    assert own_seconds(stats) == {ours: 3.0, other: 1.0}


def test_profile_finds_the_functions_that_ran() -> None:
    def work() -> int:
        return sum(range(10))

    assert "work" in {name for _, _, name in profile_calls(work)}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/x/lib/site-packages/torch/nn/modules/linear.py", "torch/nn/modules/linear.py"),
        ("/home/me/neodim/workers/engine/engine.py", "workers/engine/engine.py"),
        ("<string>", "<string>"),
    ],
)
def test_file_is_named_from_its_package_on(file: str, name: str) -> None:
    assert short_name(file) == name
