"""Which path a loaded model is computed by."""

from __future__ import annotations

from typing import Any

from workers.engine.fused_llama import FusedLlama, can_fuse
from workers.engine.general_model import GeneralModel
from workers.engine.text_model import TextModel


def open_model(model: Any, slots: int, max_length: int, *, is_general: bool = False) -> TextModel:
    """A model that the engine can run.

    Args:
        model: a transformers causal language model of one of `FAMILIES`, in evaluation mode on its
            device. Not to be used by anybody else afterwards.
        slots: rows of the cache.
        max_length: tokens that a row can hold.
        is_general: whether to take the general path even where there is a faster one.
    """
    if can_fuse(model) and not is_general:
        return FusedLlama(model, slots, max_length)
    return GeneralModel(model, slots, max_length)
