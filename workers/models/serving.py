"""A model that is ready to be served: loaded, laid out for the engine, warmed up."""

from __future__ import annotations

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor

from neodim_sampling.text.codec import TextCodec
from workers.contract.settings import Settings
from workers.engine.model_path import open_model
from workers.engine.prepare import Preparer
from workers.engine.text_model import TextModel
from workers.models.chat_template import ChatTemplate
from workers.models.loader import LoadedModel, load_model


def make_ready(settings: Settings, *, is_general: bool = False) -> tuple[LoadedModel, TextModel]:
    """Load the model that the settings name and do everything that is done once.

    Args:
        settings: of the service.
        is_general: whether to take the general path even where there is a faster one.

    Returns:
        What was loaded, with weights that may be in the other one now, and what computes.

    Raises:
        ModelUnusable: it is not there, or of a kind that is not supported.
    """
    # A thread that computed keeps OpenMP threads of its own for as long as it lives, and while
    # there are more of those than cores none waits actively: steps took up to 1.5 times as long.
    with ThreadPoolExecutor(1) as passing_thread:
        return passing_thread.submit(_load, settings, is_general).result()


def preparer_of(loaded: LoadedModel, codec: TextCodec, slots: int) -> Preparer:
    """What prepares jobs for a model.

    Args:
        loaded: the model.
        codec: its text codec.
        slots: sequences that run at once.
    """
    return Preparer(
        codec,
        ChatTemplate(loaded.tokenizer, codec, loaded.chat_template).render,
        eos_ids=loaded.eos_ids,
        n_vocab=loaded.n_vocab,
        slots=slots,
        max_length=loaded.max_length,
        eye=loaded.eye,
    )


def _load(settings: Settings, is_general: bool) -> tuple[LoadedModel, TextModel]:
    loaded = load_model(settings)
    model = open_model(loaded.model, settings.slots, loaded.max_length, is_general=is_general)
    model.warm_up()
    _return_free_memory()
    return loaded, model


def _return_free_memory() -> None:
    """Give the system what loading left behind; the C library would keep it for later.

    Only glibc has this, and needs it.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
