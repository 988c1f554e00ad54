"""A service that registers with a node, from its start to its end."""

from __future__ import annotations

import re

import pytest
from http_stand_in import Call
from stack import TINY, Stack, running
from stand_in_node import StandInNode

pytestmark = pytest.mark.stack

REGISTER = "/api/v0/ai/model/register"


def registrations(stack: Stack, node: StandInNode, n_calls: int) -> list[Call]:
    """The first so many registrations, once they have come."""

    def come() -> list[Call] | None:
        calls = [call for call in node.calls if call.path == REGISTER]
        return calls if len(calls) >= n_calls else None

    return stack.until(come, f"it registers {n_calls} times")[:n_calls]


def test_a_worker_is_registered_again_as_the_same_one_after_it_was_killed() -> None:
    with (
        StandInNode() as node,
        running("--model", str(TINY / "gpt2"), "--node-url", node.url) as stack,
    ):
        first = registrations(stack, node, 1)[0].json
        stack.kill_worker()
        second = registrations(stack, node, 2)[1].json
        stack.stop()
        last = node.calls[-1]

    assert re.fullmatch("[0-9a-f]{12}", first["cid"])
    assert first["api"] == f"{stack.url}/v1/chat/completions"
    assert second == first
    assert last.path == "/api/v0/ai/model/unregister"
    assert last.json == {name: first[name] for name in ("project", "model", "cid")}


def test_a_service_stops_in_time_and_works_while_a_node_hangs() -> None:
    with (
        StandInNode() as node,
        running("--model", str(TINY / "gpt2"), "--node-url", node.url) as stack,
    ):
        registrations(stack, node, 1)
        node.mood = "hang"
        stack.kill_worker()
        stack.until(lambda: len(node.calls) > 1, "it calls the node that hangs")
        answer = stack.generate(prompt="The old cat", generated_tokens_count=4, max_total_tokens=64)
        stack.stop()
        log = (stack.data_dir / "run" / "supervisord.log").read_text()

    assert answer["generated_tokens_count"] == 4
    # Supervisor kills what has not ended in time, and says so.
    assert "stopped: worker (exit status 0)" in log
