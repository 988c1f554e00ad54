"""One model's pipelines, which share its weights: text to image, image to image, inpainting."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from workers.contract.errors import EngineFailure, InvalidParams
from workers.contract.image_job import ImageJob
from workers.images.pictures import decode_mask, decode_source

OnStep = Callable[[], None]
"""Called after each denoising step; what it raises ends the picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """What a job's pictures are drawn on.

    Args:
        source: RGB, of the pictures' size; None = nothing.
        mask: where to draw, as `decode_mask` gives it; None = everywhere.
    """

    source: Image.Image | None
    mask: Image.Image | None

    @classmethod
    def of(cls, job: ImageJob) -> Canvas:
        """The decoded pictures of a job.

        Raises:
            InvalidParams: a file is broken.
        """
        size = (job.width, job.height)
        return cls(
            source=None if job.source is None else decode_source(job.source, size),
            mask=None if job.mask is None else decode_mask(job.mask, size),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelines:
    """One model.

    Args:
        generate: diffusers' pipeline from text to image.
        edit: the same from image to image; None = the model has none.
        inpaint: the same for a masked part of an image; None = the model has none.
    """

    generate: Any
    edit: Any | None
    inpaint: Any | None

    @torch.inference_mode()
    def draw(self, job: ImageJob, seed: int, canvas: Canvas, on_step: OnStep) -> Image.Image:
        """One picture; where there is a mask, all outside of it is as in the source.

        Args:
            job: what to draw.
            seed: the start of all its randomness.
            canvas: what to draw it on.
            on_step: called after each step.

        Raises:
            InvalidParams: the model cannot do it.
            EngineFailure: what came out is no picture.
        """
        pipeline = self._pipeline_for(job)
        made = pipeline(
            **_arguments(pipeline, job, canvas),
            # On the CPU wherever the model is: the same seed then gives the same noise everywhere.
            generator=torch.Generator().manual_seed(seed),
            callback_on_step_end=_callback(on_step),
            output_type="np",
        )
        drawn = _to_image(made.images[0])
        if drawn.size != (job.width, job.height):
            problem = f"this model draws {drawn.width}x{drawn.height} instead; ask for that"
            raise InvalidParams("size", problem)
        if canvas.mask is None or canvas.source is None:
            return drawn
        return Image.composite(drawn, canvas.source, canvas.mask)

    def _pipeline_for(self, job: ImageJob) -> Any:
        if job.source is None:
            return self.generate
        pipeline = self.edit if job.mask is None else self.inpaint
        if pipeline is None:
            field = job.source.field if job.mask is None else job.mask.field
            raise InvalidParams(field, "cannot be used with this model")
        return pipeline


def takes(pipeline: Any, argument: str) -> bool:
    """Whether a pipeline can be called with an argument."""
    return argument in inspect.signature(type(pipeline).__call__).parameters


def _arguments(pipeline: Any, job: ImageJob, canvas: Canvas) -> dict[str, Any]:
    """What a pipeline is called with: its own defaults where the job says nothing."""
    asked = {
        "negative_prompt": job.negative_prompt or None,
        "guidance_scale": job.guidance_scale,
        "image": canvas.source,
        "mask_image": canvas.mask,
        "strength": job.strength if canvas.source is not None else None,
    }
    arguments = {name: value for name, value in asked.items() if value is not None}
    for name in arguments:
        if not takes(pipeline, name):
            raise InvalidParams(name, "cannot be used with this model")
    # Most pipelines that are given an image take its size for that of the picture.
    sides = {"width": job.width, "height": job.height}
    arguments |= {name: side for name, side in sides.items() if takes(pipeline, name)}
    return {**arguments, "prompt": job.prompt, "num_inference_steps": job.steps}


def _callback(on_step: OnStep) -> Callable[..., dict[str, Any]]:
    """A hook of diffusers, which gives it tensors to change and wants them back."""

    def at_step_end(pipeline: Any, step: int, time: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        on_step()
        return tensors

    return at_step_end


def _to_image(pixels: np.ndarray[Any, Any]) -> Image.Image:
    """Pixels of [height, width, 3] from 0 to 1 as a picture."""
    if not np.isfinite(pixels).all():
        raise EngineFailure("the model failed: its pixels are not numbers")
    return Image.fromarray((pixels * 255).round().astype(np.uint8))
