#!/usr/bin/env python3
"""Builds a tiny model of Stable Diffusion's shape, with random weights, for tests and first tries.

    python scripts/tiny_image_model.py DIRECTORY

It takes seconds and some megabytes and asks no hub. Its pictures show nothing, but differ by
prompt, seed and source as those of a real model do.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import diffusers
import torch
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer
from transformers.utils import logging

SEED = 20
WIDTH = 32
"""Size of a token's vector; everything else is derived from it or as small as the shape allows."""

N_POSITIONS = 77
START, END, END_OF_WORD = "<|startoftext|>", "<|endoftext|>", "</w>"
LOUDER = 1.5
"""The last layer's weights are enlarged by this: random ones give pictures that are nearly grey."""


def build(directory: Path) -> None:
    """Write the model into a directory, which is made."""
    # diffusers loads its parts when they are named; transformers would then complain of packages
    # that nothing here needs.
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(SEED)
    tokenizer = _tokenizer()
    pipeline = diffusers.StableDiffusionPipeline(
        vae=_autoencoder(),
        text_encoder=_text_encoder(len(tokenizer)),
        tokenizer=tokenizer,
        unet=_denoiser(),
        scheduler=_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.save_pretrained(directory)


def _tokenizer() -> Any:
    """CLIP's tokenizer with the 256 bytes as its only words."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    # GPT-2's alphabet: bytes that cannot be seen are written as characters from 256 on.
    letters = [*map(chr, visible), *(chr(256 + n) for n in range(len(hidden)))]
    words = [*letters, *(letter + END_OF_WORD for letter in letters), START, END]
    with tempfile.TemporaryDirectory() as directory:
        vocabulary, merges = Path(directory) / "vocab.json", Path(directory) / "merges.txt"
        vocabulary.write_text(json.dumps({word: n for n, word in enumerate(words)}))
        merges.write_text("#version: 0.2\n")
        return CLIPTokenizer(str(vocabulary), str(merges), model_max_length=N_POSITIONS)


def _text_encoder(n_words: int) -> Any:
    config = CLIPTextConfig(
        vocab_size=n_words,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        projection_dim=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=N_POSITIONS,
        bos_token_id=n_words - 2,
        eos_token_id=n_words - 1,
        pad_token_id=n_words - 1,
    )
    return CLIPTextModel(config).eval()


def _denoiser() -> Any:
    return diffusers.UNet2DConditionModel(
        sample_size=64,
        block_out_channels=(WIDTH, 2 * WIDTH),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=WIDTH,
        attention_head_dim=8,
    ).eval()


def _autoencoder() -> Any:
    """Four levels, so that a latent stands for 8 by 8 pixels as in the real one."""
    model = diffusers.AutoencoderKL(
        block_out_channels=(8, 8, 16, WIDTH),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=1,
        latent_channels=4,
        norm_num_groups=8,
    ).eval()
    with torch.no_grad():
        model.decoder.conv_out.weight.mul_(LOUDER)
    return model


def _scheduler() -> Any:
    """As Stable Diffusion's own."""
    return diffusers.DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        clip_sample=False,
        set_alpha_to_one=False,
        steps_offset=1,
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build(Path(sys.argv[1]))
