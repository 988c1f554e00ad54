"""From settings to a model in memory: where it comes from, its precision, its device."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.utils import logging as hub_logging
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
)
from transformers.utils import logging as transformers_logging

from workers.contract.settings import Settings
from workers.engine.families import FAMILIES
from workers.engine.linear import has_arithmetic
from workers.engine.pictures import Eye
from workers.models import llava
from workers.models.gguf_import import import_gguf
from workers.models.unusable import ModelUnusable

log = logging.getLogger(__name__)

LONGEST_DEFAULT = 4096
"""Tokens of a row when nobody says otherwise; more costs memory that few need."""

PRECISIONS = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model in memory.

    Args:
        model: a transformers causal language model, in evaluation mode on its device.
        tokenizer: its tokenizer.
        eos_ids: tokens that end a text; may be empty.
        n_vocab: tokens that have both a text and a score.
        max_length: tokens that one sequence may have.
        chat_template: text of the template to use; None = the tokenizer's own.
        eye: sees pictures for the model; None = it reads none.
    """

    model: Any
    tokenizer: Any
    eos_ids: frozenset[int]
    n_vocab: int
    max_length: int
    chat_template: str | None = None
    eye: Eye | None = None


def load_model(settings: Settings) -> LoadedModel:
    """Load the model that the settings name.

    Raises:
        ModelUnusable: it is not there, or of a kind that is not supported.
    """
    hub_logging.set_verbosity_error()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    assert settings.model is not None, "the launcher names a model"
    try:
        source, is_dequantised = _source(settings)
        hub = {"revision": settings.model_revision, "cache_dir": settings.cache_dir}
        config = AutoConfig.from_pretrained(source, **hub)
        _check_family(config)
        tokenizer = AutoTokenizer.from_pretrained(source, **hub)
        device = _device(settings)
        dtype = _dtype(settings, device, is_dequantised)
        model, eye = _open(source, config, device, {"dtype": dtype, **hub})
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ModelUnusable(f"--model: {settings.model} cannot be loaded: {reason}") from error
    loaded = LoadedModel(
        model=model,
        tokenizer=tokenizer,
        eos_ids=_eos_ids(model),
        n_vocab=min(len(tokenizer), model.config.vocab_size),
        max_length=_max_length(settings, model.config),
        chat_template=_chat_template(settings),
        eye=eye,
    )
    log.warning("loaded %s in %s on %s", settings.model_name, _name(model.dtype), device)
    if device.type == "cpu" and not has_arithmetic(model.dtype):
        log.warning(
            "this processor does not compute in %s: --precision=float32 would take twice the "
            "memory and be faster with several texts at once",
            _name(model.dtype),
        )
    return loaded


def _source(settings: Settings) -> tuple[str, bool]:
    """Directory or hub name to load from, and whether its weights were quantised once."""
    name = settings.model or ""
    if name.endswith(".gguf"):
        return str(import_gguf(Path(name), Path(settings.data_dir) / "models")), True
    return name, False


def _check_family(config: Any) -> None:
    has_vision = config.model_type == llava.KIND
    language = config.text_config if has_vision else config
    if language.model_type not in FAMILIES:
        raise ModelUnusable(
            f"--model: models of type {language.model_type} are not supported; "
            f"supported are {', '.join(FAMILIES)}, also as a part of {llava.KIND}"
        )
    if has_vision:
        llava.check_vision(config)


def _open(
    source: str, config: Any, device: torch.device, options: Mapping[str, Any]
) -> tuple[Any, Eye | None]:
    """A causal language model in evaluation mode on its device, and what sees pictures for it."""
    if config.model_type != llava.KIND:
        model: Any = AutoModelForCausalLM.from_pretrained(source, **options)
        return model.to(device).eval(), None
    hub = {name: value for name, value in options.items() if name != "dtype"}
    eyesight = llava.read_eyesight(source, config, hub)
    whole: Any = AutoModelForImageTextToText.from_pretrained(source, **options)
    return llava.take_apart(whole.to(device).eval(), eyesight)


def _device(settings: Settings) -> torch.device:
    """The one device that all layers go to."""
    if not torch.cuda.is_available():
        if "a" in settings.layers:
            log.warning("no GPU was found, so --layers=%s means the CPU", settings.layers)
        return torch.device("cpu")
    parts = settings.layers.split(",")
    return torch.device("cuda", parts.index("a")) if "a" in parts else torch.device("cpu")


def _dtype(settings: Settings, device: torch.device, is_dequantised: bool) -> Any:
    """Number format of the weights.

    Weights that were quantised have no original. On the CPU they are left in float32, in which
    de-quantising gives them and a text does not depend on the batch it is made in.
    """
    if settings.precision != "original":
        return PRECISIONS[settings.precision]
    if not is_dequantised:
        return "auto"
    if device.type == "cpu":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16


def _eos_ids(model: Any) -> frozenset[int]:
    ids = model.generation_config.eos_token_id
    if ids is None:
        ids = model.config.eos_token_id
    if ids is None:
        return frozenset()
    return frozenset([ids] if isinstance(ids, int) else ids)


def _max_length(settings: Settings, config: Any) -> int:
    """Tokens that one sequence may have.

    Raises:
        ModelUnusable: more was asked for than the model's positions.
    """
    context = getattr(config, "max_position_embeddings", None) or getattr(
        config, "seq_length", None
    )
    if settings.max_length is None:
        return min(context or LONGEST_DEFAULT, LONGEST_DEFAULT)
    if context is not None and settings.max_length > context:
        raise ModelUnusable(
            f"--max-length: {settings.max_length} is more than the model's context of {context}"
        )
    return settings.max_length


def _chat_template(settings: Settings) -> str | None:
    """Text of the template that the settings name.

    Raises:
        ModelUnusable: the file cannot be read.
    """
    if settings.chat_template is None:
        return None
    try:
        return Path(settings.chat_template).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelUnusable(f"--chat-template: cannot be read: {error}") from error


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
