"""Attention controls act as their formulas say: on every family and path, in every step."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Mapping, Sequence

import pytest
import torch
from controlled import (
    ADDED,
    MULTIPLIED,
    controlled_job,
    expected_log_probs,
    log_probs_of,
    told_log_probs,
)
from tiny_engine import FAMILIES, TinyEngine, parts, running
from torch import Tensor
from torch.nn.functional import cosine_similarity

from neodim_sampling.parameters import WarperParams
from neodim_sampling.penalty_parameters import AdjustmentParams
from neodim_sampling.prompt_items import AttentionParams
from workers.contract.text_result import TextResult
from workers.engine.attention_control import AttentionControl
from workers.engine.model_path import open_model
from workers.engine.text_model import Outcome, Run, TextModel

pytestmark = pytest.mark.model

TOLERANCE = 1e-4
IDS = [70, 133, 12, 45, 150, 133, 81, 60, 133, 15, 92, 44]
FACTORS = {2: 0.3, 3: 4.0, 5: 0.0, 9: 1.7}
MODES = pytest.mark.parametrize("attention", [ADDED, MULTIPLIED], ids=["added", "multiplied"])
PATHS = pytest.mark.parametrize(
    ("family", "is_general"), [*((each, True) for each in FAMILIES), ("llama", False)]
)


def opened(family: str, *, is_general: bool) -> TextModel:
    model, _ = parts(family)
    return open_model(copy.deepcopy(model), 5, 60, is_general=is_general)


def control(model: TextModel, slot: int, attention: AttentionParams) -> None:
    """Put a row under control."""
    own = AttentionControl(FACTORS, attention)
    own.learn(IDS, model.embed)
    model.cache.factors.control(slot, own)


@torch.inference_mode()
def read_in_parts(model: TextModel, slot: int, ids: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """[T, V] log-probabilities behind each token of a text that is read part by part."""
    parts_ = torch.tensor(ids).split(list(sizes))
    hidden: list[Tensor] = []
    start = 0
    for part in parts_:
        hidden += model.read([Run(slot, start, part.tolist())]).hidden
        start += len(part)
    return model.score(torch.cat(hidden)).log_softmax(-1)


@MODES
@PATHS
def test_controlled_text_has_the_log_probs_of_the_formula_however_it_is_read(
    family: str, is_general: bool, attention: AttentionParams
) -> None:
    expected = expected_log_probs(family, IDS, FACTORS, attention)
    model = opened(family, is_general=is_general)

    for sizes in ([12], [5, 5, 2], [4, 1, 1, 3, 1, 1, 1]):
        control(model, 2, attention)
        found = read_in_parts(model, 2, IDS, sizes)

        torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("family", [each for each in FAMILIES if each != "bloom"])
@torch.inference_mode()
def test_added_logarithms_are_what_a_mask_of_the_library_adds(family: str) -> None:
    model, _ = parts(family)
    factors = torch.tensor([FACTORS.get(place, 1.0) for place in range(len(IDS))])
    mask = factors.log().clamp(min=-10000).repeat(len(IDS), 1)
    is_hidden = torch.ones(len(IDS), len(IDS)).triu(1).bool()
    mask = mask.masked_fill(is_hidden, torch.finfo(torch.float32).min)
    positions = torch.arange(len(IDS))[None]
    logits = model(
        torch.tensor([IDS]), attention_mask=mask[None, None], position_ids=positions
    ).logits[0]
    ours = opened(family, is_general=False)
    control(ours, 0, ADDED)

    found = read_in_parts(ours, 0, IDS, [7, 1, 4])

    torch.testing.assert_close(found, logits.log_softmax(-1), rtol=0, atol=TOLERANCE)


@MODES
@PATHS
def test_rows_of_both_modes_and_plain_ones_do_not_see_each_other(
    family: str, is_general: bool, attention: AttentionParams
) -> None:
    other = MULTIPLIED if attention is ADDED else ADDED
    alone, together = (opened(family, is_general=is_general) for _ in range(2))
    control(together, 0, attention)
    control(together, 2, attention)
    control(together, 3, other)

    def runs(slots: Sequence[int], start: int, stop: int) -> list[Run]:
        return [Run(slot, start, IDS[start + slot : stop + slot]) for slot in slots]

    for start, stop in [(0, 5), (5, 6), (6, 7)]:
        plain = alone.read(runs([1, 4], start, stop))
        mixed = together.read(runs([0, 1, 2, 3, 4], start, stop))

        logits = mixed.logits[[mixed.places[1], mixed.places[4]]]
        assert torch.equal(logits, plain.logits[list(plain.places)])
        assert torch.equal(
            torch.stack([mixed.hidden[1], mixed.hidden[4]]), torch.stack(plain.hidden)
        )
    for slot, mode in ((0, attention), (2, attention), (3, other)):
        text = IDS[slot : 5 + slot] + IDS[5 + slot : 6 + slot] + IDS[6 + slot : 7 + slot]
        factors = {place: each for place, each in FACTORS.items() if place < 7}
        expected = expected_log_probs(family, text, factors, mode)[-1]
        found = mixed.logits[mixed.places[slot]].log_softmax(-1)
        torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


@MODES
@pytest.mark.parametrize("family", FAMILIES)
def test_controls_hold_for_every_generated_token_of_every_sequence(
    family: str, attention: AttentionParams
) -> None:
    with running(family, chunk=5) as engine:
        result = finish(engine, IDS, FACTORS, attention, n_sequences=2)

    assert len({sequence.tokens for sequence in result.sequences}) == 2
    check(family, result, FACTORS, attention)


@MODES
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_contrastive_search_is_controlled_too(family: str, attention: AttentionParams) -> None:
    warpers = WarperParams(top_k=4, penalty_alpha=0.6)
    with running(family) as engine:
        result = finish(engine, IDS, FACTORS, attention, warpers=warpers)

    check(family, result, FACTORS, attention)


@MODES
@pytest.mark.parametrize("family", ["gpt2", "gpt_neo", "llama", "bloom"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@torch.inference_mode()
def test_controls_in_16_bits_are_near_to_those_in_32(
    family: str, attention: AttentionParams, dtype: torch.dtype
) -> None:
    loaded = copy.deepcopy(parts(family)[0]).to(dtype)
    short = open_model(copy.deepcopy(loaded), 2, 60)
    exact = open_model(loaded.float(), 2, 60)

    def error(is_controlled: bool) -> float:
        for model in (short, exact):
            model.cache.factors.control(0, None)
            if is_controlled:
                control(model, 0, attention)
        one, other = (read_in_parts(each, 0, IDS, [6, 1, 5]) for each in (short, exact))
        return float((one.float() - other).abs().max())

    # Errors of scores are multiplied as the scores are.
    assert error(is_controlled=True) < max(FACTORS.values()) * error(is_controlled=False)


@MODES
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_factor_of_one_leaves_log_probs_equal_to_the_last_bit(
    family: str, attention: AttentionParams
) -> None:
    with running(family) as engine:
        plain = finish(engine, IDS, {}, attention)
    with running(family) as engine:
        controlled = finish(engine, IDS, dict.fromkeys(range(12), 1.0), attention)

    assert told_log_probs(controlled.sequences[0]) == told_log_probs(plain.sequences[0])


@MODES
@PATHS
def test_text_under_a_factor_of_zero_everywhere_can_be_read(
    family: str, is_general: bool, attention: AttentionParams
) -> None:
    model = opened(family, is_general=is_general)
    plain = read_in_parts(model, 1, IDS, [5, 7])
    none = AttentionControl(dict.fromkeys(range(len(IDS)), 0.0), attention)
    model.cache.factors.control(1, none)

    found = read_in_parts(model, 1, IDS, [5, 7])

    assert found.isfinite().all()
    if attention is ADDED:
        # All scores are moved alike, and lose some of their digits on the way.
        torch.testing.assert_close(found, plain, rtol=0, atol=1e-2)


@MODES
@PATHS
def test_tokens_before_the_first_controlled_one_are_as_without(
    family: str, is_general: bool, attention: AttentionParams
) -> None:
    model = opened(family, is_general=is_general)
    plain = read_in_parts(model, 1, IDS, [12])
    control(model, 1, attention)

    found = read_in_parts(model, 1, IDS, [12])

    torch.testing.assert_close(found[:2], plain[:2], rtol=0, atol=1e-5)
    assert (found[3:] - plain[3:]).abs().amax(-1).min() > 1e-3


def test_huge_factors_are_still_numbers() -> None:
    model = opened("llama", is_general=False)
    for attention in (ADDED, MULTIPLIED):
        model.cache.factors.control(0, AttentionControl({3: 1e308, 4: 1e-308}, attention))

        assert read_in_parts(model, 0, IDS, [12]).isfinite().all()


@MODES
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_plain_job_beside_controlled_ones_gives_the_bits_that_it_gives_alone(
    family: str, attention: AttentionParams
) -> None:
    alone = together(family, [({}, ADDED)])
    beside = together(family, [({}, ADDED), (FACTORS, attention), ({4: 0.1}, attention)])

    assert beside[0] == alone[0]


def together(
    family: str, requests: Sequence[tuple[Mapping[int, float], AttentionParams]]
) -> list[TextResult]:
    """Results of jobs that begin in the same step and all go on to its end."""
    still = TinyEngine(family, chunk=100, is_running=False)
    jobs = [controlled_job(IDS[n:] + IDS[:n], *each) for n, each in enumerate(requests)]
    submitted = [still.submit(each) for each in jobs]
    while not all(ear.ended.is_set() for _, ear in submitted):
        still.engine.step()
    return [still.result(*each) for each in submitted]


@MODES
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_resumed_job_is_controlled_as_the_first_attempt_was(
    family: str, attention: AttentionParams
) -> None:
    params = AttentionParams(is_log_additive=attention.is_log_additive, threshold=0.0)
    job = controlled_job(IDS, FACTORS, params, n_sequences=2)
    with running(family) as engine:
        whole = engine.result(*engine.submit(job))
    made = {index: each.tokens[:4] for index, each in enumerate(whole.sequences)}

    with running(family, chunk=5) as engine:
        resumed = engine.result(*engine.submit(job, made))

    for one, other in zip(resumed.sequences, whole.sequences, strict=True):
        assert one.tokens == other.tokens
        assert told_log_probs(one) == pytest.approx(told_log_probs(other)[4:], abs=TOLERANCE)


def like(
    family: str, ids: Sequence[int], factors: Mapping[int, float], threshold: float
) -> dict[int, float]:
    """Factors of all tokens of a text of which some have factors of their own."""
    embeddings = parts(family)[0].get_input_embeddings().weight.detach()
    found = dict(factors)
    for place, token in enumerate(ids):
        if place in factors:
            continue
        cosines = {
            source: 1.0
            if ids[source] == token
            else float(cosine_similarity(embeddings[token], embeddings[ids[source]], dim=0))
            for source in factors
        }
        derived = [
            1 - (1 - factors[source]) * max(cosine, 0.0)
            for source, cosine in cosines.items()
            if cosine >= threshold
        ]
        found[place] = max(derived, default=1.0, key=lambda each: abs(math.log(each or 5e-324)))
    return found


@MODES
@pytest.mark.parametrize("threshold", [0.05, 1.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_threshold_controls_like_tokens_of_the_prompt_and_of_what_is_generated(
    family: str, attention: AttentionParams, threshold: float
) -> None:
    params = AttentionParams(is_log_additive=attention.is_log_additive, threshold=threshold)
    # So that what is generated has a controlled token too.
    adjustments = AdjustmentParams(logit_bias=((IDS[2], 9.0), (IDS[3], 9.0)))
    with running(family, chunk=5) as engine:
        result = finish(engine, IDS, FACTORS, params, n_sequences=2, adjustments=adjustments)

    for sequence in result.sequences:
        text = [*IDS, *sequence.tokens]
        factors = like(family, text, FACTORS, threshold)
        assert factors.keys() >= {1}
        assert any(factors[place] != 1 for place in range(len(IDS), len(text)))
        expected = expected_log_probs(family, text, factors, attention)
        found = told_log_probs(sequence)
        assert found == pytest.approx(log_probs_of(expected, text, len(IDS)), abs=TOLERANCE)


def test_an_explicit_factor_of_one_keeps_its_token_out_of_a_thresholds_reach() -> None:
    ids = [IDS[1], IDS[2], IDS[1], IDS[1], IDS[3]]
    with running("gpt2") as engine:
        spared = finish(engine, ids, {0: 0.1, 3: 1.0}, AttentionParams(threshold=1.0))
        named = finish(engine, ids, {0: 0.1, 2: 0.1}, ADDED)
        all_alike = finish(engine, ids, {0: 0.1}, AttentionParams(threshold=1.0), max_new_tokens=1)

    # Until such a token is generated, the two are the same.
    assert told_log_probs(spared.sequences[0])[0] == pytest.approx(
        told_log_probs(named.sequences[0])[0], abs=TOLERANCE
    )
    assert told_log_probs(all_alike.sequences[0])[0] != pytest.approx(
        told_log_probs(named.sequences[0])[0], abs=1e-6
    )


@MODES
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_contrastive_search_knows_the_factor_of_each_token_that_it_tries(
    family: str, attention: AttentionParams
) -> None:
    params = AttentionParams(is_log_additive=attention.is_log_additive, threshold=0.0)
    warpers = WarperParams(top_k=4, penalty_alpha=0.6)
    with running(family) as engine:
        result = finish(engine, IDS, FACTORS, params, warpers=warpers)

    text = [*IDS, *result.sequences[0].tokens]
    expected = expected_log_probs(family, text, like(family, text, FACTORS, 0.0), attention)
    found = told_log_probs(result.sequences[0])
    assert found == pytest.approx(log_probs_of(expected, text, len(IDS)), abs=TOLERANCE)


def test_threshold_without_controls_does_nothing() -> None:
    with running("gpt2") as engine:
        plain = finish(engine, IDS, {}, ADDED)
    with running("gpt2") as engine:
        assert finish(engine, IDS, {}, AttentionParams(threshold=-1.0)) == plain


@MODES
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_variants_of_a_prompt_read_what_stands_before_their_control_once(
    family: str, attention: AttentionParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = IDS * 4
    requests: list[dict[int, float]] = [{20: 0.1}, {}, {30: 0.1, 31: 0.0}, {}]
    with running(family) as engine:
        n_read: list[int] = []
        healthy = engine.model.read

        def read(runs: Sequence[Run]) -> Outcome:
            n_read[-1] += sum(len(run.tokens) for run in runs)
            return healthy(runs)

        monkeypatch.setattr(engine.model, "read", read)
        found = []
        for factors in requests:
            n_read.append(0)
            found.append(finish(engine, ids, factors, attention))

    assert [each - 7 for each in n_read] == [48, 28, 18, 1]
    for factors, result in zip(requests, found, strict=True):
        text = [*ids, *result.sequences[0].tokens]
        expected = expected_log_probs(family, text, factors, attention)
        told = told_log_probs(result.sequences[0])
        assert told == pytest.approx(log_probs_of(expected, text, len(ids)), abs=TOLERANCE)


@pytest.mark.parametrize("family", ["bloom", "gpt2", "llama"])
def test_jobs_of_all_kinds_in_few_rows_have_each_the_factors_of_its_own(family: str) -> None:
    chance = random.Random(17)
    requests: list[tuple[list[int], dict[int, float], AttentionParams]] = []
    for _ in range(20):
        ids = [*IDS, *IDS][: chance.randrange(1, 25)]
        places = chance.sample(range(len(ids)), min(len(ids), chance.choice([0, 0, 1, 3])))
        factors = {place: chance.choice([0.0, 0.2, 2.5]) for place in places}
        is_log_additive, threshold = chance.random() < 0.5, chance.choice([None, None, 0.1])
        params = AttentionParams(is_log_additive=is_log_additive, threshold=threshold)
        requests.append((ids, factors, params))

    with running(family, slots=5, chunk=7) as engine:
        jobs = [controlled_job(*each, n_sequences=1 + n % 2) for n, each in enumerate(requests)]
        submitted = [engine.submit(each) for each in jobs]
        results = [engine.result(*each) for each in submitted]

    for (ids, factors, params), result in zip(requests, results, strict=True):
        for sequence in result.sequences:
            text = [*ids, *sequence.tokens]
            reached = factors
            if params.threshold is not None:
                reached = like(family, text, factors, params.threshold)
            expected = expected_log_probs(family, text, reached, params)
            found = told_log_probs(sequence)
            assert found == pytest.approx(log_probs_of(expected, text, len(ids)), abs=TOLERANCE)


def finish(
    engine: TinyEngine,
    ids: Sequence[int],
    factors: Mapping[int, float],
    attention: AttentionParams,
    **fields: object,
) -> TextResult:
    return engine.result(*engine.submit(controlled_job(ids, factors, attention, **fields)))


def check(
    family: str, result: TextResult, factors: Mapping[int, float], attention: AttentionParams
) -> None:
    """Every sequence tells the log-probabilities of the formula."""
    for sequence in result.sequences:
        text = [*IDS, *sequence.tokens]
        expected = expected_log_probs(family, text, factors, attention)
        found = told_log_probs(sequence)
        assert found == pytest.approx(log_probs_of(expected, text, len(IDS)), abs=TOLERANCE)
