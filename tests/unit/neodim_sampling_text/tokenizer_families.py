"""Recorded values and tokenizers of the families, each loaded once."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from neodim_sampling.text.codec import TextCodec

DATA = Path(__file__).parents[2] / "data"
FAMILIES = ("gpt2", "opt", "xglm", "llama")
"""One of each kind."""
BYTE_LEVEL = ("bloom", "codegen", "gpt2", "gpt_neo", "gpt_neox", "gptj")
"""Those that spell every text byte by byte, and newlines like anything else."""
ALL_FAMILIES = (*BYTE_LEVEL, "llama", "opt", "xglm")


def load_records(name: str) -> list[dict[str, Any]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@cache
def load_codec(family: str) -> TextCodec:
    from transformers import AutoTokenizer

    return TextCodec(AutoTokenizer.from_pretrained(DATA / "tiny" / family))
