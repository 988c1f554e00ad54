"""From settings to an image model in memory: where it comes from, its precision, its device."""

from __future__ import annotations

import logging
from typing import Any

import diffusers
import torch
from diffusers.utils import logging as diffusers_logging
from safetensors import SafetensorError
from transformers.utils import logging as transformers_logging

from workers.contract.settings import Settings
from workers.images.pipelines import Pipelines, takes
from workers.models.unusable import ModelUnusable

log = logging.getLogger(__name__)

BROKEN = (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, SafetensorError)
"""What diffusers 0.42 raises for a model that is not there, or that it cannot make sense of."""


def load_pipelines(settings: Settings) -> Pipelines:
    """Load the image model that the settings name.

    Weights in pickled files are not read: unpickling runs what is in them.

    Raises:
        ModelUnusable: it is not there, or of a kind that is not supported.
    """
    source = settings.image_model
    assert source is not None, "the launcher names an image model"
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.float32 if device.type == "cpu" else torch.float16
    # A seed gives the same picture only where the card adds numbers up in the same order.
    torch.backends.cudnn.deterministic = True
    _be_quiet()
    try:
        pipelines = _load(source, settings.cache_dir, dtype, device)
    except BROKEN as error:
        reason = " ".join(str(error).split())
        raise ModelUnusable(f"--image-model: {source} cannot be loaded: {reason}") from error
    if not takes(pipelines.generate, "callback_on_step_end"):
        name = type(pipelines.generate).__name__
        raise ModelUnusable(f"--image-model: {name} cannot be stopped between its steps")
    name = str(dtype).removeprefix("torch.")
    log.warning("loaded %s in %s on %s", settings.image_model_name, name, device)
    return pipelines


def _be_quiet() -> None:
    """Let neither library talk of packages that nothing here needs, or draw bars into the log.

    diffusers loads its parts when they are named, and only then transformers complains.
    """
    for library in (transformers_logging, diffusers_logging):
        library.set_verbosity_error()
        library.disable_progress_bar()


def _load(
    source: str, cache_dir: str | None, dtype: torch.dtype, device: torch.device
) -> Pipelines:
    loaded: Any = diffusers.AutoPipelineForText2Image.from_pretrained(
        source, cache_dir=cache_dir, dtype=dtype, use_safetensors=True
    )
    generate = _quiet(loaded.to(device))
    return Pipelines(
        generate=generate,
        edit=_sibling(diffusers.AutoPipelineForImage2Image, generate),
        inpaint=_sibling(diffusers.AutoPipelineForInpainting, generate),
    )


def _sibling(family: Any, pipeline: Any) -> Any | None:
    """A pipeline of another kind with the same weights; None = this model has none."""
    try:
        return _quiet(family.from_pipe(pipeline))
    except ValueError:
        return None


def _quiet(pipeline: Any) -> Any:
    pipeline.set_progress_bar_config(disable=True)
    return pipeline
