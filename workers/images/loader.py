"""From settings to an image model in memory: where it comes from, its precision, its device."""

from __future__ import annotations

import logging
from typing import Any

import torch
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
    families = _import_families()
    try:
        pipelines = _load(families, source, settings.cache_dir, dtype, device)
    except BROKEN as error:
        reason = " ".join(str(error).split())
        raise ModelUnusable(f"--image-model: {source} cannot be loaded: {reason}") from error
    if not takes(pipelines.generate, "callback_on_step_end"):
        name = type(pipelines.generate).__name__
        raise ModelUnusable(f"--image-model: {name} cannot be stopped between its steps")
    name = str(dtype).removeprefix("torch.")
    log.warning("loaded %s in %s on %s", settings.image_model_name, name, device)
    return pipelines


def _import_families() -> tuple[Any, Any, Any]:
    """What makes pipelines from text to image, from image to image, and for inpainting."""
    # Importing diffusers makes transformers complain of packages that nothing here needs, so that
    # has to be told to be quiet first.
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    from diffusers import (
        AutoPipelineForImage2Image,
        AutoPipelineForInpainting,
        AutoPipelineForText2Image,
    )
    from diffusers.utils import logging as diffusers_logging

    diffusers_logging.set_verbosity_error()
    diffusers_logging.disable_progress_bar()
    return AutoPipelineForText2Image, AutoPipelineForImage2Image, AutoPipelineForInpainting


def _load(
    families: tuple[Any, Any, Any],
    source: str,
    cache_dir: str | None,
    dtype: torch.dtype,
    device: torch.device,
) -> Pipelines:
    text_to_image, image_to_image, inpainting = families
    loaded = text_to_image.from_pretrained(
        source, cache_dir=cache_dir, dtype=dtype, use_safetensors=True
    )
    generate = _quiet(loaded.to(device))
    return Pipelines(
        generate=generate,
        edit=_sibling(image_to_image, generate),
        inpaint=_sibling(inpainting, generate),
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
