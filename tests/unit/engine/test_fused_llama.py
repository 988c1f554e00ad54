"""The fused path gives what the general path gives: same scores, same states, same cache use."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from neodim_sampling.prompt_items import AttentionParams
from workers.engine.attention_control import AttentionControl
from workers.engine.fused_attention import KEYS_PER_CALL, group_nearby
from workers.engine.fused_llama import FusedLlama, can_fuse
from workers.engine.general_model import GeneralModel
from workers.engine.model_path import open_model
from workers.engine.text_model import Run, TextModel

pytestmark = pytest.mark.model

SLOTS, MAX_LENGTH, N_VOCAB = 6, 96, 300
CONFIGS: dict[str, dict[str, Any]] = {
    "grouped heads, tied": {"num_key_value_heads": 2, "tie_word_embeddings": True},
    "a key head each, untied": {"num_key_value_heads": 6, "tie_word_embeddings": False},
    "biases": {"num_key_value_heads": 3, "attention_bias": True, "mlp_bias": True},
    "heads wider than the states": {"num_key_value_heads": 1, "head_dim": 32},
    "scaled positions": {
        "num_key_value_heads": 2,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    },
}
FACTORS = {place: 2.0**place / 9 for place in range(10)}
ADDED = AttentionControl(FACTORS, AttentionParams())
MULTIPLIED = AttentionControl(FACTORS, AttentionParams(is_log_additive=False))
TEXTS = [[5, 6, 7, 8, 9, 10, 11], [100, 101], [7] * 20]


def llama(**options: Any) -> LlamaForCausalLM:
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=N_VOCAB,
        hidden_size=96,
        intermediate_size=160,
        num_hidden_layers=3,
        num_attention_heads=6,
        max_position_embeddings=128,
        initializer_range=0.2,
        **options,
    )
    model = LlamaForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        # As made they are ones and zeros, which would hide a norm or a bias that is left out.
        if "norm" in name or name.endswith("bias"):
            torch.nn.init.uniform_(parameter.data, 0.5, 1.5)
    return model


def read(model: TextModel, *runs: tuple[int, int, list[int]]) -> tuple[Tensor, Tensor]:
    """Scores behind runs of (slot, start, tokens), in their order, and all states."""
    outcome = model.read([Run(*run) for run in runs])
    return outcome.logits[list(outcome.places)], torch.cat(list(outcome.hidden))


def life_of_rows(
    model: TextModel, control: AttentionControl = ADDED
) -> list[tuple[Tensor, Tensor]]:
    """A bit of everything, in rows apart and of different lengths."""
    outcomes = [
        read(model, (0, 0, TEXTS[0]), (3, 0, TEXTS[1]), (4, 0, TEXTS[2])),
        read(model, (3, 2, TEXTS[2]), (0, 7, TEXTS[1])),
        read(model, (4, 20, [52]), (0, 9, [50]), (3, 22, [51])),
        # A long run beside single tokens.
        read(model, (5, 0, [3] * 9), (0, 10, [50]), (3, 23, [51])),
    ]
    model.cache.factors.control(3, control)
    model.cache.factors.note(3, 0, [0] * 10)
    outcomes.append(read(model, (0, 11, [60]), (3, 24, [61]), (4, 21, [62])))
    outcomes.append(read(model, (3, 25, [9]), (4, 22, [1, 2, 3])))
    logits, hidden, tried = model.try_candidates(3, torch.tensor([70, 71, 72]), 26)
    tried.keep(1)
    outcomes += [(logits, hidden), read(model, (3, 27, [80]))]
    outcomes.append(read(model, (2, 0, TEXTS[0]), (3, 28, TEXTS[1])))
    model.cache.factors.control(3, None)
    model.cache.copy_row(3, 1, 28)
    outcomes.append(read(model, (1, 28, [90]), (3, 30, [91])))
    return outcomes


@pytest.mark.parametrize("control", [ADDED, MULTIPLIED], ids=["added", "multiplied"])
@pytest.mark.parametrize("name", CONFIGS)
@torch.inference_mode()
def test_fused_path_gives_the_scores_and_states_of_the_general_path(
    name: str, control: AttentionControl
) -> None:
    model = llama(**CONFIGS[name])
    general = GeneralModel(copy.deepcopy(model), SLOTS, MAX_LENGTH)
    fused = FusedLlama(model, SLOTS, MAX_LENGTH)

    expected, found = life_of_rows(general, control), life_of_rows(fused, control)

    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@torch.inference_mode()
def test_fused_path_in_16_bits_is_as_near_to_float32_as_the_general_path(
    dtype: torch.dtype,
) -> None:
    # Weights that 16 bits hold exactly, so that only the arithmetic differs.
    model = llama(num_key_value_heads=2, tie_word_embeddings=True).to(dtype)
    exact = life_of_rows(GeneralModel(copy.deepcopy(model).float(), SLOTS, MAX_LENGTH))

    def error(path: Callable[[Any, int, int], TextModel]) -> float:
        outcomes = life_of_rows(path(copy.deepcopy(model), SLOTS, MAX_LENGTH))
        pairs = zip(outcomes, exact, strict=True)
        return max(float((a - b).abs().max()) for (a, _), (b, _) in pairs)

    assert error(FusedLlama) < 1.5 * error(GeneralModel)


@pytest.mark.parametrize("is_log_additive", [True, False])
@torch.inference_mode()
def test_factors_of_keys_reach_only_their_own_row(is_log_additive: bool) -> None:
    model = FusedLlama(llama(num_key_value_heads=2), SLOTS, MAX_LENGTH)
    read(model, *((slot, 0, text) for slot, text in enumerate(TEXTS)))
    newest = [(slot, len(text), [50]) for slot, text in enumerate(TEXTS)]
    plain, _ = read(model, newest[0], newest[2])
    unlike, _ = read(model, newest[1])

    params = AttentionParams(is_log_additive=is_log_additive)
    model.cache.factors.control(1, AttentionControl({0: 0.01, 1: 7.0}, params))
    model.cache.factors.note(1, 0, TEXTS[1])
    together, _ = read(model, *newest)

    assert torch.equal(together[[0, 2]], plain)
    assert not torch.allclose(together[1], unlike[0], atol=1e-3)


def test_scores_are_made_only_for_runs_that_need_them() -> None:
    model = FusedLlama(llama(), SLOTS, MAX_LENGTH)
    texts = [Run(0, 0, [1, 2]), Run(2, 0, [3], needs_scores=False), Run(1, 0, [4])]

    some = model.read(texts)
    none = model.read([Run(0, 2, [5, 6], needs_scores=False)])

    assert sorted(place for place in some.places if place is not None) == [0, 1]
    assert some.places[1] is None
    assert len(some.logits) == 2
    assert none.places == [None]


def test_weights_are_taken_out_of_the_loaded_model() -> None:
    model = llama(num_key_value_heads=2)

    FusedLlama(model, SLOTS, MAX_LENGTH)

    assert sum(each.numel() for each in model.parameters()) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"hidden_act": "gelu"},
        {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}},
    ],
)
def test_what_cannot_be_fused_takes_the_general_path(options: dict[str, Any]) -> None:
    model = llama(**options)

    assert not can_fuse(model)
    assert isinstance(open_model(model, SLOTS, MAX_LENGTH), GeneralModel)


def test_general_path_can_be_asked_for() -> None:
    assert isinstance(open_model(llama(), SLOTS, MAX_LENGTH), FusedLlama)
    assert isinstance(open_model(llama(), SLOTS, MAX_LENGTH, is_general=True), GeneralModel)


@pytest.mark.parametrize(
    ("slots", "starts", "expected"),
    [
        ([0, 1, 2, 3], [9, 40, 9, 70], [(0, 4)]),
        # Rows between that have no token are read in vain, where that is little.
        ([0, 2, 3, 9], [9, 9, 9, 9], [(0, 4)]),
        ([0, 2, 30], [99, 99, 99], [(0, 2), (2, 3)]),
        ([0, 1, 2], [0, 2 * KEYS_PER_CALL, 0], [(0, 1), (1, 2), (2, 3)]),
        ([4, 5, 6], [7000, 7100, 7000], [(0, 3)]),
        ([3], [5], [(0, 1)]),
        ([], [], []),
    ],
)
def test_near_rows_of_like_length_are_attended_to_in_one_call(
    slots: list[int], starts: list[int], expected: list[tuple[int, int]]
) -> None:
    runs = [Run(slot, start, [1]) for slot, start in zip(slots, starts, strict=True)]

    assert group_nearby(runs) == expected
