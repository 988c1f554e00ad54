"""Recorded steps of fixed shapes give what steps of the shape at hand give.

What a card records, a CPU can only do again; shapes, padding and reuse are the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from neodim_sampling.prompt_items import AttentionParams
from workers.engine.attention_control import AttentionControl
from workers.engine.decode_graphs import FEWEST_KEYS, DecodeGraphs
from workers.engine.fused_llama import FusedLlama
from workers.engine.text_model import Run

pytestmark = pytest.mark.model

SLOTS, MAX_LENGTH = 6, 300


class Recorder:
    """Does a step again into the memory of its first result, as a replayed graph does."""

    def __init__(self) -> None:
        self.n_recorded = 0

    def __call__(self, step: Callable[[], Tensor]) -> Callable[[], Tensor]:
        self.n_recorded += 1
        result = step()
        return lambda: result.copy_(step())


def model() -> LlamaForCausalLM:
    torch.manual_seed(4)
    config = LlamaConfig(
        vocab_size=90,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.2,
    )
    return LlamaForCausalLM(config).eval()


@torch.inference_mode()
def test_recorded_steps_give_the_scores_of_plain_ones() -> None:
    loaded = model()
    plain = FusedLlama(copy.deepcopy(loaded), SLOTS, MAX_LENGTH)
    recorded = FusedLlama(loaded, SLOTS, MAX_LENGTH)
    recorder = Recorder()
    recorded._graphs = DecodeGraphs(recorded._forward, recorded.cache, recorder)
    lengths = {0: 5, 2: FEWEST_KEYS - 2, 3: 40, 5: 7}
    prompts = [
        Run(slot, 0, [(slot * 7 + i + 1) % 90 for i in range(n)]) for slot, n in lengths.items()
    ]
    plain.read(prompts)
    recorded.read(prompts)

    for step, slots in enumerate([(0, 2, 3), (3,), (5, 0, 3), (0, 2, 3, 5), (2, 0, 3), (2, 5)]):
        runs = [Run(slot, lengths[slot], [(step * 5 + slot) % 90]) for slot in slots]
        one, other = plain.read(runs), recorded.read(runs)
        lengths |= {slot: lengths[slot] + 1 for slot in slots}

        assert other.places == one.places
        torch.testing.assert_close(other.logits, one.logits, rtol=1e-4, atol=1e-4)

    # For 4 rows and 1 up to the fewest keys; for 4 and 2 rows with a longer one beside them.
    assert recorder.n_recorded == 4


@pytest.mark.parametrize("is_log_additive", [True, False])
@torch.inference_mode()
def test_controlled_rows_and_longer_runs_are_read_as_they_are(is_log_additive: bool) -> None:
    it = FusedLlama(model(), SLOTS, MAX_LENGTH)
    recorder = Recorder()
    it._graphs = DecodeGraphs(it._forward, it.cache, recorder)
    it.read([Run(0, 0, [1, 2, 3]), Run(1, 0, [4, 5])])
    params = AttentionParams(is_log_additive=is_log_additive)
    it.cache.factors.control(1, AttentionControl({0: 0.5}, params))

    it.read([Run(1, 2, [7])])

    assert recorder.n_recorded == 0


@torch.inference_mode()
def test_plain_rows_are_recorded_beside_controlled_ones_and_give_the_same() -> None:
    it = FusedLlama(model(), SLOTS, MAX_LENGTH)
    recorder = Recorder()
    it._graphs = DecodeGraphs(it._forward, it.cache, recorder)
    it.read([Run(slot, 0, [slot + 1, 2, 3]) for slot in range(3)])
    alone = it.read([Run(0, 3, [6]), Run(2, 3, [7])])
    it.cache.factors.control(1, AttentionControl({0: 0.5}, AttentionParams()))

    beside = it.read([Run(0, 3, [6]), Run(1, 3, [8]), Run(2, 3, [7])])

    assert recorder.n_recorded == 1
    assert torch.equal(beside.logits[[beside.places[0], beside.places[2]]], alone.logits)
