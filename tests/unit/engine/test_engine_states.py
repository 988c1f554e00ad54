"""Whatever is asked of the engine in whatever order, nothing is lost, mixed up or starved."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from scripted_engine import NONSENSE, POISON, Request, ScriptedEngine

from workers.engine.generation import Generation

SLOTS = 4
MAX_LENGTH = 64


def random_request(chance: random.Random, slots: int = SLOTS) -> Request:
    """Often behind a preamble that others have too; now and then one that cannot be done."""
    preamble = [[], [1] * 20, [1] * 20 + [2] * 5, [3] * 17][chance.randrange(4)]
    prompt = preamble + [chance.randrange(4) for _ in range(chance.randrange(1, 12))]
    if chance.random() < 0.02:
        prompt.insert(chance.randrange(len(prompt) + 1), chance.choice([POISON, NONSENSE]))
    return Request(
        prompt,
        chance.randrange(0, 6),
        n_sequences=chance.randrange(2, slots + 1) if chance.random() < 0.1 else 1,
        log_probs=chance.choice([0, 3]) if chance.random() < 0.2 else None,
        echo=chance.random() < 0.3,
        frequency_penalty=chance.choice([-1.0, 9.5]) if chance.random() < 0.2 else 0.0,
        stop=chance.randrange(NONSENSE) if chance.random() < 0.2 else None,
    )


def check_end(request: Request, *, is_cancelled: bool) -> None:
    """What a request hears is its own text, or an error where one is due, and one end."""
    assert request.n_ends == 1
    is_bad = request.is_read and {POISON, NONSENSE} & set(request.prompt)
    assert (request.error is None) or is_bad
    if request.error is None and not is_cancelled:
        assert not is_bad
    for index in range(request.n_sequences):
        made = request.made.get(index, [])
        if is_cancelled or is_bad:
            assert made == request.expected[: len(made)]
        else:
            assert made == request.expected
            check_log_probs(request, index)


def check_log_probs(request: Request, index: int) -> None:
    """What a request that is whole tells of its tokens is what the model said of them."""
    told, generation = request.told.get(index, []), request.generation
    assert generation is not None
    if request.log_probs is None:
        assert told == generation.prompt_likelihoods == []
        return
    expected, n_prompt = request.expected_log_probs, len(request.prompt) - 1
    assert [each.token for each in told] == request.made.get(index, [])
    assert [len(each.top) for each in told] == [request.log_probs] * len(told)
    of_prompt = [each.log_prob for each in generation.prompt_likelihoods]
    assert of_prompt == pytest.approx(expected[:n_prompt] if request.echo else [])
    assert [each.log_prob for each in told] == pytest.approx(expected[n_prompt:])


class EngineMachine(RuleBasedStateMachine):
    """Submits, cancels and steps in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.it = ScriptedEngine(SLOTS, MAX_LENGTH)
        self.engine = self.it.engine
        self.live: list[tuple[Generation, Request]] = []
        self.cancelled: set[Request] = set()

    @rule(seed=st.integers(0, 2**32), count=st.integers(1, 6))
    def submit(self, seed: int, count: int) -> None:
        chance = random.Random(seed)
        for _ in range(count):
            request = random_request(chance)
            self.live.append((self.it.submit(request), request))

    @rule(count=st.integers(1, 5))
    def step(self, count: int) -> None:
        for _ in range(count):
            self.engine.step()
            self.check_nobody_waits_for_free_rows()
        self.sort_out()

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        generation, request = data.draw(st.sampled_from(self.live))
        generation.cancel()
        self.cancelled.add(request)

        self.engine.step()

        assert request.n_ends == 1
        assert all(each.slot is None for each in generation.sequences)
        self.sort_out()

    def sort_out(self) -> None:
        for generation, request in self.live:
            if request.n_ends:
                check_end(request, is_cancelled=request in self.cancelled)
                assert all(each.slot is None for each in generation.sequences)
        self.live = [each for each in self.live if not each[1].n_ends]

    def check_nobody_waits_for_free_rows(self) -> None:
        # Who ended in a step leaves a row that is given away at the next.
        self.engine._admit()
        if self.engine._waiting:
            first = self.engine._waiting[0]
            assert len(first.to_read) > self.engine._slots.n_free

    @invariant()
    def every_row_is_free_or_has_one_holder(self) -> None:
        held = Counter(
            each.slot
            for generation in self.engine._running
            for each in generation.sequences
            if each.slot is not None
        )
        assert all(count == 1 for count in held.values())
        assert len(held) + self.engine._slots.n_free == SLOTS

    @invariant()
    def nothing_is_forgotten(self) -> None:
        known = {*self.engine._running, *self.engine._waiting, *self.engine._arrived}
        assert {generation for generation, _ in self.live} == known

    def teardown(self) -> None:
        for _ in range(2000):
            if self.engine.is_idle:
                break
            self.engine.step()
        self.sort_out()
        assert not self.live
        assert self.engine._slots.n_free == SLOTS


TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_twenty_thousand_random_requests_all_end_as_they_should() -> None:
    chance = random.Random(3)
    it = ScriptedEngine(16, MAX_LENGTH, chunk=64)
    requests = [random_request(chance, 8) for _ in range(20_000)]
    generations: dict[Request, Generation] = {}
    cancelled: set[Request] = set()
    places: dict[Generation, int] = {}
    n_ended, newest = 0, -1

    arriving = iter(requests)
    while n_ended < len(requests):
        for request in islice(arriving, chance.randrange(30)):
            generations[request] = it.submit(request)
            places[generations[request]] = len(places)
        if generations and chance.random() < 0.2:
            request = chance.choice(list(generations))
            cancelled.add(request)
            generations[request].cancel()
        it.engine.step()
        new = [places[each] for each in it.engine._running if places[each] > newest]
        # Nobody overtakes: rows are given in order of arrival.
        assert new == sorted(new)
        newest = max([newest, *new])
        for request in [each for each in generations if each.n_ends]:
            check_end(request, is_cancelled=request in cancelled)
            del generations[request]
            n_ended += 1

    assert it.engine._slots.n_free == 16
    assert it.engine.is_idle
