"""Rows keep their texts while nobody needs the room, and are shared by what begins alike."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.cache_utils import Cache

from neodim_sampling.parameters import WarperParams
from neodim_sampling.prompt_items import AttentionParams
from neodim_sampling.row import RowSettings, SamplingRow, TokenConstraints
from neodim_sampling.text.tiles import Tiles
from workers.engine.attention_control import AttentionControl
from workers.engine.pictures import PlacedPicture, SeenPicture
from workers.engine.sequence import Sequence
from workers.engine.slot_cache import SlotCache
from workers.engine.slot_pool import SHORTEST_COPY, SlotPool, shared_length

CHAT = list(range(100, 160))
FIRST_OF_PICTURE = 20


@pytest.fixture
def cache() -> Cache:
    cache = SlotCache(1, 4, 200, torch.float32, torch.device("cpu"))
    cache.rows[0].allocate(1, 1, torch.float32, torch.device("cpu"))
    return cache


@pytest.fixture
def pool(cache: SlotCache) -> SlotPool:
    return SlotPool(cache, 4)


def sequence(text: list[int]) -> Sequence:
    settings = RowSettings(warpers=WarperParams(), constraints=TokenConstraints(), n_vocab=1000)
    row = SamplingRow(settings=settings, input_ids=text, n_preamble=0, seed=1)
    # Nothing here spells tokens or looks for stops.
    return Sequence(row, None, None)  # type: ignore[arg-type]


def begin(pool: SlotPool, cache: SlotCache, text: list[int]) -> tuple[Sequence, int]:
    """Give a row, and read the text into it as the model would: each token as itself."""
    it = sequence(text)
    n_known = pool.give(it, text)
    held = cache.rows[0].rows[it.held_slot, 0, :n_known, 0].tolist()
    assert held == text[:n_known]
    cache.rows[0].rows[it.held_slot, :, : len(text), 0] = torch.tensor(text).float()
    it.n_held = len(text)
    return it, n_known


def test_chat_goes_on_in_its_own_row(pool: SlotPool, cache: SlotCache) -> None:
    first, _ = begin(pool, cache, CHAT)
    slot = first.held_slot
    pool.take_back(first)

    second, n_known = begin(pool, cache, [*CHAT, 1, 2, 3])

    assert (second.held_slot, n_known) == (slot, len(CHAT))


def test_pictures_with_the_same_tokens_are_shared_only_by_those_that_look_alike(
    pool: SlotPool, cache: SlotCache
) -> None:
    first = looking(1)
    pool.give(first, first.names)
    first.n_held = len(CHAT)
    pool.take_back(first)
    other, same = looking(2), looking(1)

    assert pool.give(other, other.names) == FIRST_OF_PICTURE
    assert pool.give(same, same.names) == len(CHAT) - 1


def looking(number: int) -> Sequence:
    """The chat, with a picture of that number in it."""
    picture = SeenPicture(Tiles(100, ()), -number, lambda: torch.empty(0))
    it = sequence([*CHAT[:FIRST_OF_PICTURE], *[100] * 20, *CHAT[FIRST_OF_PICTURE + 20 :]])
    it.pictures = [PlacedPicture(FIRST_OF_PICTURE, FIRST_OF_PICTURE + 20, picture)]
    return it


def test_same_prompt_again_leaves_one_token_to_read(pool: SlotPool, cache: SlotCache) -> None:
    first, _ = begin(pool, cache, CHAT)
    pool.take_back(first)

    assert begin(pool, cache, CHAT)[1] == len(CHAT) - 1


def test_shared_preamble_is_copied_from_a_row_that_runs(pool: SlotPool, cache: SlotCache) -> None:
    first, _ = begin(pool, cache, CHAT)

    second, n_known = begin(pool, cache, [*CHAT[:40], 1, 2, 3])

    assert n_known == 40
    assert second.held_slot != first.held_slot


def test_other_question_behind_a_preamble_leaves_the_first_its_text(
    pool: SlotPool, cache: SlotCache
) -> None:
    first, _ = begin(pool, cache, CHAT)
    pool.take_back(first)

    other, n_known = begin(pool, cache, [*CHAT[:30], 1, 2])
    back, n_known_back = begin(pool, cache, [*CHAT, 9])

    assert (n_known, n_known_back) == (30, len(CHAT))
    assert other.held_slot != back.held_slot


def test_row_that_was_free_for_longest_is_given_up_first(pool: SlotPool, cache: SlotCache) -> None:
    texts = [[n * 100 + i for i in range(30)] for n in range(1, 6)]
    for text in texts[:4]:
        pool.take_back(begin(pool, cache, text)[0])

    pool.take_back(begin(pool, cache, texts[4])[0])

    assert [begin(pool, cache, [*text, 1])[1] for text in texts[1:4]] == [30, 30, 30]
    assert begin(pool, cache, [*texts[0], 1])[1] == 0


def test_row_that_others_begin_like_is_kept_while_they_come_and_go(
    pool: SlotPool, cache: SlotCache
) -> None:
    pool.take_back(begin(pool, cache, CHAT)[0])

    n_known = []
    for n in range(9):
        other, known = begin(pool, cache, [*CHAT[: 20 + 2 * n], *[n + 1] * 20])
        n_known.append(known)
        pool.take_back(other)

    assert n_known == [20 + 2 * n for n in range(9)]


def test_empty_rows_are_taken_before_rows_that_hold_texts(pool: SlotPool, cache: SlotCache) -> None:
    pool.take_back(begin(pool, cache, CHAT)[0])
    broken, _ = begin(pool, cache, [5] * 20)
    pool.take_back(broken, is_sound=False)

    for n in range(3):
        begin(pool, cache, [n + 1] * 20)

    assert begin(pool, cache, [*CHAT, 1])[1] == len(CHAT)


def test_few_tokens_are_read_rather_than_copied(pool: SlotPool, cache: SlotCache) -> None:
    begin(pool, cache, CHAT)

    assert begin(pool, cache, [*CHAT[: SHORTEST_COPY - 1], 1])[1] == 0
    assert begin(pool, cache, [*CHAT[:SHORTEST_COPY], 1])[1] == SHORTEST_COPY


def test_unsound_row_is_wiped_and_never_shared(pool: SlotPool, cache: SlotCache) -> None:
    first, _ = begin(pool, cache, CHAT)
    slot = first.held_slot
    cache.rows[0].rows[slot] = torch.nan

    pool.take_back(first, is_sound=False)

    assert begin(pool, cache, CHAT)[1] == 0
    assert not cache.rows[0].rows[slot].isnan().any()


def test_controlled_row_takes_and_gives_only_what_stands_before_its_first_factor(
    pool: SlotPool, cache: SlotCache
) -> None:
    begin(pool, cache, CHAT)
    controlled = sequence(CHAT)
    controlled.control = AttentionControl({30: 0.5, 25: 2.0}, AttentionParams())

    assert pool.give(controlled, CHAT) == 25
    controlled.n_held = len(CHAT)
    pool.take_back(controlled)

    assert begin(pool, cache, [*CHAT[:40], 7])[1] == 40  # of the one without factors
    assert pool._kept[controlled_slot(pool, CHAT[:25])] == CHAT[:25]


def test_controlled_row_that_runs_gives_only_what_stands_before_its_first_factor(
    pool: SlotPool, cache: SlotCache
) -> None:
    controlled = sequence(CHAT)
    controlled.control = AttentionControl({25: 2.0}, AttentionParams())
    pool.give(controlled, CHAT)
    cache.rows[0].rows[controlled.held_slot, :, : len(CHAT), 0] = torch.tensor(CHAT).float()
    controlled.n_held = len(CHAT)

    assert begin(pool, cache, CHAT)[1] == 25


def controlled_slot(pool: SlotPool, text: list[int]) -> int:
    """The free row that keeps a text."""
    return next(slot for slot, kept in pool._kept.items() if kept == text)


def test_row_has_the_factors_of_its_own_sequence_alone(pool: SlotPool, cache: SlotCache) -> None:
    controlled = sequence(CHAT)
    controlled.control = AttentionControl({1: 0.5}, AttentionParams())
    pool.give(controlled, CHAT)
    slot = controlled.held_slot
    cache.factors.note(slot, 0, CHAT)
    held = cache.factors.biases([slot], 3)
    assert held is not None
    assert held.exp().flatten().tolist() == pytest.approx([1, 0.5, 1])

    pool.take_back(controlled)

    assert cache.factors.mode(slot) is None
    assert cache.factors.biases([slot], 3) is None


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_shared_length_counts_the_tokens_alike(one: list[int], other: list[int]) -> None:
    expected = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        expected += 1

    assert shared_length(one, other) == expected


def test_cleared_row_holds_zeros(cache: SlotCache) -> None:
    cache.rows[0].rows += torch.inf

    cache.clear_row(2)

    assert cache.rows[0].rows[2].eq(0).all()
    assert cache.rows[0].rows[1].isinf().all()
