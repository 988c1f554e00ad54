"""Prompts with pictures give what the whole model gives, and no picture is taken for another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from seeing_engine import (
    N_TILES,
    SeeingEngine,
    expected_log_probs,
    looking_job,
    picture,
)
from tiny_engine import Ear, TinyEngine

from neodim_sampling.prompt_items import AreaControl, Crop, ImageItem
from workers.contract.errors import InvalidParams, MissingCapability
from workers.contract.text_result import TextResult
from workers.engine.generation import Generation
from workers.engine.pictures import insets_of
from workers.engine.text_model import Outcome, Run

pytestmark = pytest.mark.model

RED_AND_BLUE, GREEN = picture("red", "blue"), picture("green")
PARTS = ("I see ", RED_AND_BLUE, " there.")
"""Six tokens of text, a picture, seven of text."""


@pytest.fixture(params=[False, True], ids=["fused", "general"])
def is_general(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def seeing(tiny_vision_model: Path, is_general: bool) -> Iterator[SeeingEngine]:
    engine = SeeingEngine(tiny_vision_model, is_general=is_general)
    yield engine
    engine.stop()


def run_of(generation: Generation, slot: int) -> Run:
    """All of a prompt at once."""
    ids = generation.fitted.input_ids
    return Run(slot, 0, ids, insets=insets_of(generation.sequences[0].pictures, 0, len(ids)))


@torch.inference_mode()
def test_log_probs_of_a_prompt_are_those_of_the_whole_model(
    seeing: SeeingEngine, tiny_vision_model: Path
) -> None:
    generation = seeing.preparer.prepare(looking_job(*PARTS, GREEN, "!"), {}, Ear())

    outcome = seeing.model.read([run_of(generation, 0)])

    found = seeing.model.score(outcome.hidden[0]).log_softmax(-1)
    expected = expected_log_probs(tiny_vision_model, generation)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_log_probs_of_generated_tokens_are_those_of_the_whole_model(
    seeing: SeeingEngine, tiny_vision_model: Path
) -> None:
    generation, ear = seeing.submit(looking_job(*PARTS))
    made = seeing.result(generation, ear).sequences[0]

    expected = expected_log_probs(tiny_vision_model, generation)[-len(made.tokens) - 1 :]

    assert list(made.tokens) == expected.argmax(-1).tolist()[: len(made.tokens)]
    assert made.scores is not None
    found = [each.log_prob for each in made.scores]
    assert found == pytest.approx(expected.max(-1).values.tolist()[: len(found)], abs=1e-4)


@pytest.mark.parametrize("chunk", [1, 16, 100])
def test_border_of_a_chunk_within_a_picture_changes_nothing(
    seeing: SeeingEngine, tiny_vision_model: Path, is_general: bool, chunk: int
) -> None:
    whole = seeing.result(*seeing.submit(looking_job(*PARTS)))
    in_parts = SeeingEngine(tiny_vision_model, is_general=is_general, chunk=chunk)

    found = in_parts.result(*in_parts.submit(looking_job(*PARTS)))
    in_parts.stop()

    assert tokens(found) == tokens(whole)
    assert log_probs(found) == pytest.approx(log_probs(whole), abs=1e-4)


@torch.inference_mode()
def test_rows_of_text_are_to_the_last_bit_the_same_beside_a_picture(seeing: SeeingEngine) -> None:
    generation = seeing.preparer.prepare(looking_job(*PARTS), {}, Ear())
    with_picture = run_of(generation, 1)
    # As long as the other, so that only the picture makes a difference.
    without = Run(1, 0, with_picture.tokens)
    neighbours = [Run(0, 0, [5, 6, 7, 8]), Run(2, 0, [9])]

    expected = seeing.model.read([*neighbours, without])
    found = seeing.model.read([*neighbours, with_picture])

    for place in (0, 1):
        assert torch.equal(found.hidden[place], expected.hidden[place])
    assert not torch.equal(found.hidden[2], expected.hidden[2])


def test_text_is_the_same_alone_and_beside_a_job_with_a_picture(seeing: SeeingEngine) -> None:
    job = looking_job("Only words.", max_new_tokens=20)
    alone = seeing.result(*seeing.submit(job))
    other = seeing.submit(looking_job(*PARTS, max_new_tokens=30))

    beside = seeing.result(*seeing.submit(job))
    seeing.result(*other)

    assert tokens(beside) == tokens(alone)


def test_several_texts_behind_one_picture_look_at_it_once(
    seeing: SeeingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count_looks(seeing, monkeypatch)

    two = seeing.result(*seeing.submit(looking_job(*PARTS, n_sequences=2)))

    assert len(looks) == 1
    assert tokens(two) == tokens(seeing.result(*seeing.submit(looking_job(*PARTS)))) * 2


def test_more_texts_than_rows_look_at_a_picture_once(
    seeing: SeeingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, ear = count_looks(seeing, monkeypatch), Ear()

    parts = seeing.preparer.prepare_parts(looking_job(*PARTS, n_sequences=6), {}, ear)
    for part in parts:
        seeing.engine.submit(part)

    assert ear.ended.wait(60)
    assert len(parts) > 1
    assert len(ear.tokens) == 6
    assert len(looks) == 1


def test_resumed_job_goes_on_behind_its_picture(seeing: SeeingEngine) -> None:
    job = looking_job(*PARTS, n_sequences=2)
    whole = tokens(seeing.result(*seeing.submit(job)))

    resumed = seeing.submit(job, {0: whole[0][:3], 1: whole[1][:3]})

    assert tokens(seeing.result(*resumed)) == whole


def test_other_picture_of_the_same_size_is_not_taken_for_the_one_before(
    seeing: SeeingEngine, tiny_vision_model: Path, is_general: bool
) -> None:
    fresh = SeeingEngine(tiny_vision_model, is_general=is_general)
    expected = fresh.result(*fresh.submit(looking_job("See ", GREEN, " now")))
    fresh.stop()
    first = seeing.result(*seeing.submit(looking_job("See ", RED_AND_BLUE, " now")))

    second = seeing.result(*seeing.submit(looking_job("See ", GREEN, " now")))

    assert log_probs(second) == pytest.approx(log_probs(expected), abs=1e-5)
    assert log_probs(second) != pytest.approx(log_probs(first), abs=1e-3)


def test_same_picture_again_is_not_read_again(
    seeing: SeeingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = seeing.result(*seeing.submit(looking_job("See ", RED_AND_BLUE, " now")))
    looks = count_looks(seeing, monkeypatch)
    n_read = count_tokens(seeing, monkeypatch)

    second = seeing.result(*seeing.submit(looking_job("See ", RED_AND_BLUE, " now")))

    assert tokens(second) == tokens(first)
    assert sum(n_read) < N_TILES
    assert looks == []


def test_tokens_of_a_picture_count_and_have_no_text(seeing: SeeingEngine) -> None:
    generation, ear = seeing.submit(looking_job(*PARTS))
    report = seeing.result(generation, ear).prompt

    fitted = generation.fitted
    assert report.n_used_input == 6 + N_TILES + 7
    assert report.used_prompt == "I see  there."
    assert fitted.text_places == [*range(6), *range(6 + N_TILES, 13 + N_TILES)]
    assert seeing.codec.decode(fitted.text_ids) == "I see  there."


def test_echo_has_the_words_around_a_picture_with_their_log_probs(
    seeing: SeeingEngine, tiny_vision_model: Path
) -> None:
    job = looking_job("I see ", RED_AND_BLUE, "it", echo=True)
    generation, ear = seeing.submit(job)
    echo = seeing.result(generation, ear).prompt.echo

    assert echo is not None
    assert "".join(each.text for each in echo) == "I see it"
    ids = generation.fitted.input_ids
    expected = expected_log_probs(tiny_vision_model, generation)
    places = [*range(1, 6), 6 + N_TILES, 7 + N_TILES]
    assert echo[0].log_prob is None
    assert [each.log_prob for each in echo[1:]] == pytest.approx(
        [float(expected[place - 1, ids[place]]) for place in places], abs=1e-4
    )


def test_echo_of_words_behind_a_picture_has_a_log_prob_for_each(seeing: SeeingEngine) -> None:
    result = seeing.result(*seeing.submit(looking_job(GREEN, "ab", echo=True, is_raw=True)))

    assert result.prompt.echo is not None
    assert [each.alone for each in result.prompt.echo] == ["a", "b"]
    assert None not in [each.log_prob for each in result.prompt.echo]


def test_prompt_may_be_a_picture_alone(seeing: SeeingEngine) -> None:
    generation, ear = seeing.submit(looking_job(GREEN))

    result = seeing.result(generation, ear)

    assert result.prompt.n_used_input == N_TILES
    assert len(tokens(result)[0]) == 6


def test_controls_of_a_picture_are_factors_of_its_tiles(seeing: SeeingEngine) -> None:
    # A square of 40 pixels from 10 on: its first tile begins at a sixth of the width.
    square = AreaControl(left=1 / 6, top=0.0, width=2 / 36, height=1 / 24, factor=0.0)

    fitted = seeing.preparer.prepare(
        looking_job("I see ", picture("red", "blue", controls=(square,))), {}, Ear()
    ).fitted

    assert fitted.factors == {6: pytest.approx(0.5)}


def test_control_of_the_right_half_reaches_the_right_tiles(seeing: SeeingEngine) -> None:
    half = AreaControl(left=0.5, top=0.0, width=0.5, height=1.0, factor=0.25)
    item = picture("red", "blue", size=(48, 48), controls=(half,))

    fitted = seeing.preparer.prepare(looking_job("I see ", item), {}, Ear()).fitted

    right = [6 + row * 12 + column for row in range(12) for column in range(6, 12)]
    assert fitted.factors == dict.fromkeys(right, 0.25)


def test_cropped_picture_is_to_the_model_the_cut_one_sent_whole(seeing: SeeingEngine) -> None:
    crop = Crop(x=30, y=4, size=20)
    cut = picture("blue", size=(20, 20))

    cropped = seeing.preparer.prepare(
        looking_job(picture("red", "blue", crop=crop)), {}, Ear()
    ).sequences[0]
    whole = seeing.preparer.prepare(looking_job(cut), {}, Ear()).sequences[0]

    assert cropped.names == whole.names
    assert torch.equal(cropped.pictures[0].picture.rows, whole.pictures[0].picture.rows)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (ImageItem(picture=b"no picture"), "must be a picture: a PNG, JPEG or WebP file"),
        (ImageItem(picture=GREEN.picture[:60]), "cannot be decoded"),
        (picture("red", crop=Crop(x=30, y=0, size=40)), r"the crop of 40 pixels .* of 60x40"),
        (picture("red", crop=Crop(x=-1, y=0, size=4)), "the crop of 4 pixels"),
        (picture("red", crop=Crop(x=0, y=0, size=0)), "the crop of 0 pixels"),
    ],
)
def test_bad_picture_is_refused(seeing: SeeingEngine, item: ImageItem, reason: str) -> None:
    with pytest.raises(InvalidParams, match=rf"^prompt: {reason}"):
        seeing.preparer.prepare(looking_job("See ", item), {}, Ear())


def test_model_of_text_alone_refuses_pictures() -> None:
    engine = TinyEngine(is_running=False)

    with pytest.raises(MissingCapability, match="does not read pictures"):
        engine.preparer.prepare(looking_job("See ", GREEN), {}, Ear())


def test_tower_that_fails_fails_only_its_own_job(
    seeing: SeeingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = seeing.submit(looking_job("Only words.", max_new_tokens=40))
    generation = seeing.preparer.prepare(looking_job(*PARTS), {}, ear := Ear())
    seen = generation.sequences[0].pictures[0].picture
    monkeypatch.setitem(seen.__dict__, "look", fail)

    seeing.engine.submit(generation)

    assert ear.ended.wait(60)
    assert ear.error is not None
    assert len(tokens(seeing.result(*healthy))[0]) == 40


def fail() -> torch.Tensor:
    raise RuntimeError("no rows")


def tokens(result: TextResult) -> list[tuple[int, ...]]:
    return [each.tokens for each in result.sequences]


def log_probs(result: TextResult) -> list[float | None]:
    return [score.log_prob for each in result.sequences for score in each.scores or ()]


def count_looks(seeing: SeeingEngine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets longer with each look at a picture."""
    looks: list[int] = []
    body = seeing.eye._body
    healthy = body.get_image_features

    def look(*args: object, **options: object) -> object:
        looks.append(1)
        return healthy(*args, **options)

    monkeypatch.setattr(body, "get_image_features", look)
    return looks


def count_tokens(seeing: SeeingEngine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the number of tokens of each run."""
    numbers: list[int] = []
    healthy = seeing.model.read

    def read(runs: list[Run]) -> Outcome:
        numbers.extend(len(run.tokens) for run in runs)
        return healthy(runs)

    monkeypatch.setattr(seeing.model, "read", read)
    return numbers
