from __future__ import annotations

import pytest
from aleph_alpha_answers import END, alternatives, record, result, sequence, token, tokens
from aleph_alpha_client import CompletionResponse, Image, Prompt, Text, Tokens
from picture_files import as_base64, stripes

from api.aleph_alpha.prompt import PromptItems
from api.aleph_alpha.renderer import render_completion
from neodim_sampling.prompt_items import (
    AreaControl,
    Crop,
    IdsItem,
    ImageItem,
    TextControl,
    TextItem,
)
from workers.contract.text_result import FinishReason

ALL = ("log_probs", "raw_completion", "completion_tokens")


def rendered(*sequences, **others):
    return render_completion(record(result(*sequences, **others)))


def completion(made, **others):
    (found,) = rendered(made, **others)["completions"]
    return found


def test_an_answer_has_just_what_it_must():
    answer = rendered(sequence(*tokens(" The", " New", " York")), n_prompt=1)

    assert answer == {
        "model_version": "tiny",
        "completions": [
            {"index": 0, "completion": " The New York", "finish_reason": "maximum_tokens"}
        ],
        "num_tokens_prompt_total": 1,
        "num_tokens_generated": 3,
    }


def test_the_vendors_client_reads_an_answer_with_everything():
    made = sequence(*tokens(" a"))
    echo = (token("Hi", None),)

    read = CompletionResponse.from_json(
        rendered(made, fields=ALL, echo=echo, items=(TextItem(text="Hi"),))
    )

    assert read.optimized_prompt == Prompt.from_text("Hi")
    (found,) = read.completions
    assert (found.completion, found.raw_completion) == ("Hi a", "Hi a")
    assert found.completion_tokens == ["Hi", " a"]
    assert found.log_probs == [{}, {" a": -1.0}]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (FinishReason.LENGTH, "maximum_tokens"),
        (FinishReason.END_OF_TEXT, "end_of_text"),
        (FinishReason.STOP, "stop_sequence_reached"),
    ],
)
def test_the_reason_of_an_end_has_its_own_name(reason, said):
    assert completion(sequence(*tokens("a"), reason=reason))["finish_reason"] == said


def test_a_completion_of_two_candidates_has_the_totals_of_both():
    """The recorded one of the ids [49222, 2998]."""
    answer = rendered(
        sequence(*tokens("!")),
        fields=("raw_completion", "completion_tokens"),
        n_prompt=2,
        n_made=2,
        n_candidates=2,
    )

    (found,) = answer["completions"]
    assert (found["completion"], found["completion_tokens"]) == ("!", ["!"])
    assert found["raw_completion"] == "!"
    assert (answer["num_tokens_prompt_total"], answer["num_tokens_generated"]) == (4, 2)


def test_an_echo_alone_has_a_map_for_each_token_and_an_empty_one_for_the_first():
    """The recorded one of "Hello world" with `maximum_tokens` 0."""
    echo = (token(" Hello", None), token(" world", -6.125))

    answer = rendered(sequence(), fields=ALL, echo=echo, n_prompt=2)

    (found,) = answer["completions"]
    assert found["completion"] == " Hello world"
    assert found["completion_tokens"] == [" Hello", " world"]
    assert found["log_probs"] == [{}, {" world": -6.125}]
    assert found["finish_reason"] == "maximum_tokens"
    assert (answer["num_tokens_prompt_total"], answer["num_tokens_generated"]) == (2, 0)


def test_what_was_asked_for_is_there_although_it_is_empty():
    found = completion(sequence(), fields=ALL)

    assert (found["log_probs"], found["raw_completion"], found["completion_tokens"]) == ([], "", [])


def test_the_end_of_a_text_is_a_token_and_in_the_raw_text_alone():
    """The recorded one of a picture, " a dog and a cat": six tokens."""
    words = tokens(" a", " dog", " and", " a", " cat", END)

    answer = rendered(sequence(*words, reason=FinishReason.END_OF_TEXT), fields=ALL, n_prompt=147)

    (found,) = answer["completions"]
    assert found["completion"] == " a dog and a cat"
    assert found["raw_completion"] == f" a dog and a cat{END}"
    assert found["completion_tokens"][-1] == END
    assert len(found["log_probs"]) == len(found["completion_tokens"]) == 6
    assert (found["finish_reason"], answer["num_tokens_generated"]) == ("end_of_text", 6)


def test_each_completion_has_its_index():
    answer = rendered(sequence(*tokens("a")), sequence(*tokens("b")))

    assert [each["index"] for each in answer["completions"]] == [0, 1]
    assert answer["num_tokens_prompt_total"] == 6


def test_a_bad_end_of_a_character_before_a_special_token_stays_visible():
    last = token(f"\ufffd{END}", alone=END, is_special=True)

    found = completion(sequence(token("a"), token("", alone="\ufffd"), last), fields=ALL)

    assert found["completion"] == "a\ufffd"
    assert found["raw_completion"] == f"a\ufffd{END}"


def test_whole_tokens_go_with_a_stop_sequence():
    """The documented example."""
    words = tokens(" to", " the", " doctor", " away")

    answer = rendered(sequence(*words, stop="tor away"), fields=ALL)

    (found,) = answer["completions"]
    assert found["completion"] == found["raw_completion"] == " to the"
    assert found["completion_tokens"] == [" to", " the"]
    assert len(found["log_probs"]) == 2
    assert (found["finish_reason"], answer["num_tokens_generated"]) == ("stop_sequence_reached", 4)


def test_tokens_that_end_where_a_stop_sequence_begins_stay():
    assert completion(sequence(*tokens("a", "b", "STOP"), stop="STOP"))["completion"] == "ab"


def test_parts_of_a_character_go_with_the_token_that_completes_it():
    made = sequence(token("a"), token("", alone="\ufffd"), token("ü", alone="\ufffd"), stop="ü")

    assert completion(made, fields=ALL)["completion_tokens"] == ["a"]


def test_parts_of_a_character_stay_before_the_token_that_completes_it():
    made = sequence(
        token("", alone="\ufffd"), token("ü", alone="\ufffd"), token("!STOP"), stop="STOP"
    )

    found = completion(made, fields=ALL)

    assert (found["completion"], found["completion_tokens"]) == ("ü", ["\ufffd", "\ufffd"])


def log_probs(*told):
    return completion(sequence(*told), fields=("log_probs",))["log_probs"]


def test_a_token_without_alternatives_is_told_alone():
    assert log_probs(token("\n", -1.5)) == [{"\n": -1.5}]


def test_the_likeliest_tokens_come_first_and_the_chosen_one_last_where_it_is_none_of_them():
    top = alternatives(("a", -0.5), ("b", -1.5))

    chosen, other = log_probs(token("b", -1.5, id_=1, top=top), token("z", -9.0, id_=7, top=top))

    assert list(chosen.items()) == [("a", -0.5), ("b", -1.5)]
    assert list(other.items()) == [("a", -0.5), ("b", -1.5), ("z", -9.0)]


def test_of_several_tokens_with_one_text_the_chosen_one_counts_else_the_likeliest():
    top = alternatives(("\ufffd", -0.5), ("b", -1.0), ("\ufffd", -1.5))

    chosen, other = log_probs(
        token("", -1.5, id_=2, alone="\ufffd", top=top), token("b", -1.0, id_=1, top=top)
    )

    assert list(chosen.items()) == [("b", -1.0), ("\ufffd", -1.5)]
    assert list(other.items()) == [("\ufffd", -0.5), ("b", -1.0)]


def test_a_changed_prompt_is_told_with_what_its_controls_are_now():
    picture = stripes((48, 32))
    items = (
        TextItem(
            text="Hello  world! ",
            controls=(TextControl(start=0, length=5, factor=0.5),),
        ),
        ImageItem(
            picture=picture,
            crop=Crop(x=10, y=2, size=30),
            controls=(
                AreaControl(left=0.0, top=0.0, width=0.5, height=0.5, factor=0.0, is_complete=True),
            ),
        ),
        IdsItem(ids=(1, 2)),
        TextItem(text=" The  end"),
    )

    told = rendered(sequence(), items=items)["optimized_prompt"]

    assert told[0] == {
        "type": "text",
        "data": "Hello  world! ",
        "controls": [{"start": 0, "length": 5, "factor": 0.5, "token_overlap": "partial"}],
    }
    assert told[1]["controls"][0]["token_overlap"] == "complete"
    assert [each["type"] for each in told] == ["text", "image", "token_ids", "text"]
    assert PromptItems().deserialize(told) == items
    assert [type(each) for each in Prompt.from_json(told).items] == [Text, Image, Tokens, Text]
    assert told[1]["data"] == as_base64(picture)
