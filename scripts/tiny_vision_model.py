#!/usr/bin/env python3
"""Builds a tiny model of LLaVA's shape, with random weights, for tests and first tries.

    python scripts/tiny_vision_model.py DIRECTORY

It takes seconds and a megabyte and asks no hub. What it writes means nothing, but differs by text
and picture as that of a real model does. A picture takes 12 by 12 tokens.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

SEED = 30
WIDTH = 64
"""Size of a token's vector; everything else is derived from it or as small as the shape allows."""

N_POSITIONS = 1024
TILE, TILES_PER_SIDE = 4, 12
START, END, PICTURE = "<s>", "</s>", "<image>"
SPREAD = 0.15
"""Of the weights: with the usual one, all tokens are nearly equally likely."""

MEAN, DEVIATION = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
"""Of colours, as CLIP's own preprocessing has them."""


def build(directory: Path) -> None:
    """Write the model into a directory, which is made."""
    logging.disable_progress_bar()
    torch.manual_seed(SEED)
    tokenizer = _tokenizer()
    _model(tokenizer).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    (directory / "preprocessor_config.json").write_text(json.dumps(_preprocessing(), indent=2))


def _tokenizer() -> Any:
    """The 256 bytes and three special tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    specials = [AddedToken(each, special=True) for each in (START, END, PICTURE)]
    tokenizer.add_special_tokens(specials)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=START,
        eos_token=END,
        additional_special_tokens=[PICTURE],
    )


def _model(tokenizer: Any) -> Any:
    language = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=N_POSITIONS,
        initializer_range=SPREAD,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    tower = CLIPVisionConfig(
        hidden_size=WIDTH // 2,
        intermediate_size=WIDTH,
        num_hidden_layers=3,
        num_attention_heads=2,
        image_size=TILE * TILES_PER_SIDE,
        patch_size=TILE,
    )
    common: dict[str, Any] = {
        "initializer_range": SPREAD,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    config = LlavaConfig(
        vision_config=tower,
        text_config=language,
        image_token_index=tokenizer.convert_tokens_to_ids(PICTURE),
        image_seq_length=TILES_PER_SIDE**2,
        **common,
    )
    return LlavaForConditionalGeneration(config).eval()


def _preprocessing() -> dict[str, Any]:
    """How pictures become what the tower computes with, as such a file says it."""
    side = TILE * TILES_PER_SIDE
    return {
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": side},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": side, "width": side},
        "do_convert_rgb": True,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": MEAN,
        "image_std": DEVIATION,
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build(Path(sys.argv[1]))
