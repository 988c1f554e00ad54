from __future__ import annotations

from standard_answers import data, record, result, scored, sequence

from api.errors import problem_of
from api.standard.stream import chat_chunks, completion_chunks
from workers.contract.errors import EngineFailure
from workers.contract.job_record import JobEvent
from workers.contract.text_result import FinishReason


def chat(n_texts=1, *, tells_scores=False, repeats_usage=False):
    return chat_chunks(
        record(), n_texts=n_texts, tells_scores=tells_scores, repeats_usage=repeats_usage
    )


def completion(*ids, n_texts=1, tells_scores=False, repeats_usage=False):
    records = [record(job_id=each) for each in ids or ("7",)]
    return completion_chunks(
        records, n_texts=n_texts, tells_scores=tells_scores, repeats_usage=repeats_usage
    )


def delta(text="", *, sequence=0, scores=(), cuts=()):
    return JobEvent(id="1-0", kind="delta", sequence=sequence, text=text, scores=scores, cuts=cuts)


def said(frames):
    """Index and text of each chunk."""
    found = []
    for chunk in data(frames):
        (choice,) = chunk["choices"]
        text = choice["text"] if "text" in choice else choice["delta"].get("content")
        found.append((choice["index"], text))
    return found


def tokens(frames):
    """The tokens that each chunk tells."""
    return [
        [each["token"] for each in chunk["choices"][0]["logprobs"]["content"]]
        for chunk in data(frames)
    ]


HEAD = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1_700_000_000}


def test_a_chat_begins_with_the_role_alone():
    (chunk,) = data(chat().begin())

    assert chunk.items() >= {**HEAD, "model": "tiny"}.items()
    assert chunk["choices"] == [
        {"index": 0, "delta": {"role": "assistant"}, "logprobs": None, "finish_reason": None}
    ]


def test_each_text_of_a_chat_begins_with_the_role():
    chunks = data(chat(3).begin())

    assert [chunk["choices"][0]["index"] for chunk in chunks] == [0, 1, 2]


def test_a_completion_begins_with_its_text():
    assert list(completion().begin()) == []


def test_what_a_text_gains_is_a_chunk():
    (chunk,) = data(chat().delta("7", delta("Hi")))

    assert chunk.items() >= HEAD.items()
    assert chunk["choices"] == [
        {"index": 0, "delta": {"content": "Hi"}, "logprobs": None, "finish_reason": None}
    ]
    assert "usage" not in chunk


def test_text_that_came_in_parts_is_sent_in_parts():
    assert said(chat().delta("7", delta("abcd", cuts=(1, 2, 1)))) == [(0, "a"), (0, "bc"), (0, "d")]


def test_tokens_without_a_text_are_no_chunk():
    assert list(chat().delta("7", delta(scores=scored("")))) == []


def test_three_texts_that_come_in_turns_keep_their_places():
    chunks = chat(3)
    order = [(2, "x"), (0, "a"), (1, "m"), (2, "y"), (0, "b")]

    found = [said(chunks.delta("7", delta(text, sequence=index)))[0] for index, text in order]

    assert found == order


def test_texts_of_several_prompts_have_places_one_after_the_other():
    chunks = completion("one", "two", n_texts=2)

    found = [
        said(chunks.delta(job_id, delta("x", sequence=each)))
        for job_id in ("two", "one")
        for each in (0, 1)
    ]

    assert found == [[(2, "x")], [(3, "x")], [(0, "x")], [(1, "x")]]


def test_log_probabilities_wait_until_their_text_is_seen():
    chunks = chat(tells_scores=True)
    held = list(chunks.delta("7", delta(scores=scored("St"))))

    shown = tokens(chunks.delta("7", delta("Still ", scores=scored("St", "ill ", "a")[1:])))

    assert held == []
    assert shown == [["St", "ill "]]


def test_log_probabilities_of_a_stop_string_are_not_told():
    chunks = chat(tells_scores=True)

    told = tokens(chunks.delta("7", delta("a", scores=scored("a", "ST", "OP"))))
    ending = data(chunks.end([record(result(sequence("a", stop="STOP")))]))

    assert told == [["a"]]
    assert ending[0]["choices"][0]["logprobs"] is None


def test_log_probabilities_come_with_their_part_of_a_text():
    chunks = chat(tells_scores=True)

    told = tokens(chunks.delta("7", delta("abc", scores=scored("a", "", "bc"), cuts=(1, 2))))

    assert told == [["a"], ["", "bc"]]


def test_texts_do_not_mix_their_log_probabilities():
    chunks = chat(2, tells_scores=True)
    list(chunks.delta("7", delta(sequence=0, scores=scored("zero"))))

    told = tokens(chunks.delta("7", delta("one", sequence=1, scores=scored("one"))))

    assert told == [["one"]]


def test_log_probabilities_that_nobody_asked_for_are_null_although_they_are_known():
    (chunk,) = data(chat().delta("7", delta("a", scores=scored("a"))))

    assert chunk["choices"][0]["logprobs"] is None


def test_an_offset_counts_the_tokens_told_though_less_of_their_text_was_sent():
    chunks = completion(tells_scores=True)
    # "the" may become a stop string, so that it is held back though its token has begun.
    frames = [
        *chunks.delta("7", delta("ab", scores=scored("ab", "c the"))),
        *chunks.delta("7", delta("c ")),
        *chunks.delta("7", delta("the d", scores=scored(" d"))),
    ]

    offsets = [chunk["choices"][0]["logprobs"]["text_offset"] for chunk in data(frames)]

    assert offsets == [[0], [2], [7]]


def test_offsets_of_a_completion_go_on_from_chunk_to_chunk():
    chunks = completion(tells_scores=True)
    events = [delta("abc", scores=scored("ab", "c")), delta("d", scores=scored("d"))]

    frames = [frame for event in events for frame in chunks.delta("7", event)]

    offsets = [chunk["choices"][0]["logprobs"]["text_offset"] for chunk in data(frames)]
    assert offsets == [[0, 2], [3]]


def test_the_last_chunk_has_an_empty_delta_a_reason_and_the_usage():
    made = result(sequence("Hi", tokens=(1, 9), reason=FinishReason.END_OF_TEXT))

    last, done = data(chat().end([record(made)]))

    assert last["choices"] == [
        {
            "index": 0,
            "delta": {"content": ""},
            "logprobs": None,
            "finish_reason": "stop",
            "stop_reason": 9,
        }
    ]
    assert last["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    assert done == "[DONE]"


def test_every_text_ends_and_the_last_end_has_the_usage_of_all():
    *ends, done = data(chat(3).end([record(result(*map(sequence, "abc")))]))

    assert [(each["choices"][0]["index"], "usage" in each) for each in ends] == [
        (0, False),
        (1, False),
        (2, True),
    ]
    assert ends[-1]["usage"]["completion_tokens"] == 6
    assert done == "[DONE]"


def test_the_usage_comes_once_more_without_a_choice_when_that_is_asked_for():
    chunks = chat(repeats_usage=True)

    last, extra, done = data(chunks.end([record(result(sequence("a")))]))

    assert extra["choices"] == []
    assert extra["usage"] == last["usage"]
    assert extra.items() >= HEAD.items()
    assert done == "[DONE]"


def test_an_answer_of_several_prompts_ends_once():
    chunks = completion("one", "two")
    records = [record(result(sequence(each)), job_id=each) for each in ("one", "two")]

    *ends, done = data(chunks.end(records))

    assert [each["choices"][0]["index"] for each in ends] == [0, 1]
    assert ends[1]["usage"]["total_tokens"] == 10
    assert {each["id"] for each in ends} == {"cmpl-one"}
    assert done == "[DONE]"


def test_a_failure_is_an_event_of_its_own():
    (frame,) = chat().failure(problem_of(EngineFailure("it broke")))

    kind, said = frame.split(b"\n", 1)
    assert kind == b"event: error"
    assert data([said])[0]["code"] == 2041
