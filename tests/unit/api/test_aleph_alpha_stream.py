from __future__ import annotations

import json
from collections import defaultdict

import pytest
from aleph_alpha_answers import END, record, result, sequence, token, tokens
from aleph_alpha_client.completion import stream_item_from_json

from api.aleph_alpha.adapter import completion_job, read_completion
from api.aleph_alpha.renderer import render_completion
from api.aleph_alpha.stream import CompletionWriter
from api.errors import problem_of
from neodim_sampling.prompt_items import TextItem
from workers.contract.errors import OutOfMemory
from workers.contract.job_record import JobEvent
from workers.contract.text_result import FinishReason

EVERYTHING = {"tokens": True, "log_probs": 0}
FIELDS = ("completion", "raw_completion", "completion_tokens", "log_probs")


def writer(**fields):
    return CompletionWriter(
        completion_job(read_completion({"model": "tiny", "prompt": "Hi", **fields}))
    )


def delta(text="", scores=(), *, sequence=0, echo=()):
    return JobEvent(
        id="1-0", kind="delta", text=text, scores=tuple(scores), sequence=sequence, echo=echo
    )


def items(frames):
    """What frames say, read as the vendor's client reads lines."""
    found = []
    for line in b"".join(frames).decode().split("\n"):
        if line.strip():
            assert line.startswith("data: ")
            found.append(json.loads(line.removeprefix("data: ")))
            stream_item_from_json(found[-1])
    return found


def streamed(made, events, **fields):
    """All items of an answer whose job had these events."""
    writing = writer(**fields)
    frames = [frame for each in events for frame in writing.delta("7", each)]
    return items([*frames, *writing.end([record(made)])])


def joined(found):
    """The chunks of each completion, put together."""
    texts = defaultdict(dict)
    for item in found:
        if item["type"] == "stream_chunk":
            for name in FIELDS:
                if name in item:
                    before = texts[item["index"]].get(name, type(item[name])())
                    texts[item["index"]][name] = before + item[name]
    return [texts[index] for index in sorted(texts)]


def answered(made):
    """The same fields of the answer that is no stream."""
    completions = render_completion(record(made))["completions"]
    return [{name: each[name] for name in FIELDS if name in each} for each in completions]


def test_a_stream_has_the_recorded_items_in_their_order():
    words = tokens(" The", " New", " York", " Times")
    made = result(sequence(*words), n_prompt=1)

    found = streamed(made, [delta("".join(each.text for each in words), words)])

    assert found == [
        {"type": "stream_chunk", "index": 0, "completion": " The New York Times"},
        {
            "type": "stream_summary",
            "index": 0,
            "model_version": "tiny",
            "finish_reason": "maximum_tokens",
        },
        {"type": "completion_summary", "num_tokens_prompt_total": 1, "num_tokens_generated": 4},
    ]


def test_a_chunk_has_its_own_tokens_in_every_field_that_is_asked_for():
    one, two = token(" a", -0.5), token(" b", -1.5)
    made = result(sequence(one, two))

    chunks = streamed(made, [delta(" a", [one]), delta(" b", [two])], **EVERYTHING)[:2]

    assert [each["completion_tokens"] for each in chunks] == [[" a"], [" b"]]
    assert [each["log_probs"] for each in chunks] == [[{" a": -0.5}], [{" b": -1.5}]]
    assert [each["raw_completion"] for each in chunks] == [" a", " b"]


def test_tokens_wait_until_all_of_their_text_is_certain():
    writing = writer()
    held = list(writing.delta("7", delta(" doc", tokens(" doctor"))))

    shown = items(writing.delta("7", delta("tor", tokens())))

    assert held == []
    assert [each["completion"] for each in shown] == [" doctor"]


def test_the_tokens_of_a_stop_sequence_are_never_sent():
    words = tokens(" the", " doctor", " away")
    made = result(sequence(*words, stop="tor away"), fields=("completion_tokens",))
    events = [delta(" the", words[:1]), delta(" doc", words[1:2]), delta("", words[2:])]

    found = streamed(made, events, tokens=True)

    assert joined(found)[0]["completion_tokens"] == [" the"]
    assert found[-2]["finish_reason"] == "stop_sequence_reached"


def test_a_character_is_sent_with_the_token_that_completes_it():
    parts = (token("", alone="\ufffd"), token("ü", alone="\ufffd"))
    writing = writer(tokens=True)
    held = list(writing.delta("7", delta("", parts[:1])))

    (chunk,) = items(writing.delta("7", delta("ü", parts[1:])))

    assert held == []
    assert (chunk["completion"], chunk["completion_tokens"]) == ("ü", ["\ufffd", "\ufffd"])


def test_parts_of_a_character_that_is_never_completed_come_at_the_end():
    parts = (token("a"), token("", alone="\ufffd"))
    made = result(sequence(*parts), fields=("raw_completion", "completion_tokens"))

    found = streamed(made, [delta("a", parts)], tokens=True)

    assert joined(found) == answered(made)


@pytest.mark.parametrize("fields", [{}, EVERYTHING, {"raw_completion": True}])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_the_chunks_are_the_answer_however_the_text_comes(fields, size):
    words = tokens("a", " b", "", "ü", " c", " d", END)
    asked = completion_job(
        read_completion({"model": "tiny", "prompt": "Hi", **fields})
    ).answer_fields
    echo = (token("Hi", None), token(" there"))
    ended = sequence(*words, reason=FinishReason.END_OF_TEXT)
    stopped = sequence(*words, stop="c d")
    made = result(ended, stopped, fields=asked, echo=echo)
    events = []
    for start in range(0, len(words), size):
        part = words[start : start + size]
        n_before = sum(len(each.text) for each in words[:start])
        text = "".join(each.text for each in part)
        certain = stopped.text[n_before : n_before + len(text)]
        first = echo if start == 0 else ()
        events += [delta(text, part, echo=first), delta(certain, part, sequence=1, echo=first)]

    found = streamed(made, events, n=2, echo=True, **fields)

    assert joined(found) == answered(made)


def test_a_prompt_that_no_event_told_is_echoed_at_the_end():
    made = result(sequence(), echo=(token("Hi", None),), fields=("completion_tokens",))

    found = streamed(made, [], tokens=True)

    assert joined(found)[0]["completion_tokens"] == ["Hi"]


def test_an_echo_that_comes_again_is_sent_once():
    echo = (token("Hi", None), token(" there"))
    writing = writer(tokens=True, echo=True)

    frames = [*writing.delta("7", delta(echo=echo)), *writing.delta("7", delta(echo=echo))]

    assert [each["completion_tokens"] for each in items(frames)] == [["Hi", " there"]]


def test_a_long_echo_is_sent_in_lines_that_the_client_can_read():
    echo = tuple(token("ü" * 10) for _ in range(20_000))
    writing = writer(**EVERYTHING, echo=True)

    frames = list(writing.delta("7", delta(echo=echo)))

    assert max(map(len, frames)) < 64 * 1024
    assert len(joined(items(frames))[0]["completion_tokens"]) == 20_000


def test_each_completion_ends_after_its_last_chunk_and_the_totals_come_last():
    one, other = sequence(*tokens("a")), sequence(*tokens("b", "c"))
    made = result(one, other, items=(TextItem(text="Hi"),))
    events = [delta("b", tokens("b"), sequence=1), delta("a", tokens("a"))]

    found = streamed(made, events, n=2)

    order = [(each["type"], each.get("index")) for each in found]
    assert order == [
        ("stream_chunk", 1),
        ("stream_chunk", 0),
        ("stream_summary", 0),
        ("stream_chunk", 1),
        ("stream_summary", 1),
        ("completion_summary", None),
    ]
    assert found[-1]["num_tokens_prompt_total"] == 6
    assert found[-1]["num_tokens_generated"] == 3
    assert found[-1]["optimized_prompt"] == [{"type": "text", "data": "Hi", "controls": []}]


def test_a_text_that_is_all_special_needs_no_chunk():
    made = result(sequence(*tokens(END), reason=FinishReason.END_OF_TEXT))

    found = streamed(made, [delta(END, tokens(END))])

    assert [each["type"] for each in found] == ["stream_summary", "completion_summary"]


def test_a_failure_breaks_the_connection():
    with pytest.raises(ConnectionResetError):
        writer().failure(problem_of(OutOfMemory("no")))


def test_the_connection_is_kept_open_by_what_the_client_takes_for_nothing():
    assert items([writer().keep_alive]) == []
