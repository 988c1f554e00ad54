"""What an image job is, whatever the protocol: the request in canonical form and its result.

Adapters in `api` translate into `ImageJob` and render from `ImageResult`; workers know only these.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from neodim_sampling.errors import InvalidParams
from workers.contract.picture_header import is_png, picture_size
from workers.contract.text_job import SEED_LIMIT

MAX_PICTURES = 100
"""Most pictures of one job, whatever the service allows."""

SIZE_STEP = 8
"""Sides are multiples of this: a latent stands for 8 by 8 pixels."""

MIN_SIDE, MAX_SIDE = 64, 4096
MAX_STEPS = 500
MAX_GUIDANCE = 100.0
MAX_SOURCE_PIXELS = 2**25
"""Pixels of a picture that is decoded, at most: 128 MiB in memory."""


class ResponseFormat(StrEnum):
    """How the pictures are answered."""

    URL = "url"
    B64_JSON = "b64_json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture that a client sent: a PNG, JPEG or WebP by its first bytes, small enough to decode.

    Args:
        field: how the client named it, for errors.
        body: the file.
    """

    field: str
    body: bytes

    def __post_init__(self) -> None:
        """Look at the first bytes, naming the field at fault."""
        size = picture_size(self.body)
        if size is None:
            raise InvalidParams(self.field, "must be a picture: a PNG, JPEG or WebP file")
        if size[0] * size[1] > MAX_SOURCE_PIXELS:
            problem = f"{size[0]}x{size[1]} are too many; allowed: at most {MAX_SOURCE_PIXELS}"
            raise InvalidParams(self.field, f"{problem} pixels")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, as the file says."""
        size = picture_size(self.body)
        assert size is not None, "it was checked"
        return size


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageJob:
    """One request for pictures, valid by construction.

    Args:
        model: name of the model, as clients know it.
        prompt: what to show.
        seed: picture i is drawn with `seed + i`; the same seed gives the same picture.
        width, height: of the pictures, multiples of `SIZE_STEP`.
        negative_prompt: what not to show; "" = off.
        n_pictures: pictures to draw.
        steps: denoising steps of each, >= 1; with a source only `strength` of them are done.
        guidance_scale: how closely to follow the prompt; None = the model's own default.
        source: picture to begin with; None = from nothing.
        mask: its fully transparent areas are drawn anew, all else stays; None = everything.
        strength: how much of the source is drawn anew, above 0 up to 1 = all of it.
        response_format: how the pictures are answered.
        user: who asks, in the client's words; "" = not said.
        kind: tells it in JSON from jobs of other kinds.
    """

    model: str
    prompt: str
    seed: int
    width: int
    height: int
    steps: int
    negative_prompt: str = ""
    n_pictures: int = 1
    guidance_scale: float | None = None
    source: Picture | None = None
    mask: Picture | None = None
    strength: float = 1.0
    response_format: ResponseFormat = ResponseFormat.URL
    user: str = ""
    kind: Literal["image"] = "image"

    def __post_init__(self) -> None:
        """Check every value, naming the field at fault."""
        _check("n", 1 <= self.n_pictures <= MAX_PICTURES, f"must be from 1 to {MAX_PICTURES}")
        _check("seed", 0 <= self.seed < SEED_LIMIT, f"must be from 0 to {SEED_LIMIT - 1}")
        _check("steps", 1 <= self.steps <= MAX_STEPS, f"must be from 1 to {MAX_STEPS}")
        for name, side in (("width", self.width), ("height", self.height)):
            check_side(name, side, MAX_SIDE)
        self._check_guidance()
        _check("strength", 0 < self.strength <= 1, "must be above 0 and at most 1")
        problem = f"must be at least 1 / steps, here {1 / self.steps:.3g}, or nothing is done"
        _check("strength", self.steps_each >= 1, problem)
        self._check_mask()

    @property
    def steps_each(self) -> int:
        """Denoising steps that are done for each picture."""
        return self.steps if self.source is None else int(self.steps * self.strength)

    @property
    def n_expected_steps(self) -> int:
        """Denoising steps over all pictures."""
        return self.steps_each * self.n_pictures

    def _check_guidance(self) -> None:
        scale = self.guidance_scale
        if scale is None:
            return
        in_range = 0 <= scale <= MAX_GUIDANCE
        _check("guidance_scale", in_range, f"must be from 0 to {MAX_GUIDANCE:g}")
        problem = "has no effect with a guidance_scale of 1 or less"
        _check("negative_prompt", not self.negative_prompt or scale > 1, problem)

    def _check_mask(self) -> None:
        mask, source = self.mask, self.source
        if mask is None:
            return
        _check(mask.field, source is not None, "needs an image that it belongs to")
        assert source is not None, "it was checked"
        _check(mask.field, is_png(mask.body), "must be a PNG file")
        wanted = "{}x{}".format(*source.size)
        problem = f"must be as large as the image, {wanted}, not {'{}x{}'.format(*mask.size)}"
        _check(mask.field, mask.size == source.size, problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageResult:
    """All that a protocol may want to tell of a finished image job; `pictures` has the files.

    Args:
        n_pictures: pictures that were drawn, fewer than asked for where the job was cancelled.
        prompt: the prompt used.
        width, height: of each picture.
        response_format: how they are answered, as the job said.
        is_partial: whether the job was cancelled before its end.
        kind: tells it in JSON from results of other kinds.
    """

    n_pictures: int
    prompt: str
    width: int
    height: int
    response_format: ResponseFormat = ResponseFormat.URL
    is_partial: bool = False
    kind: Literal["image"] = "image"


def check_side(field: str, pixels: int, most: int) -> None:
    """Refuse what cannot be the width or height of a picture.

    Args:
        field: how the client named it.
        pixels: the side.
        most: the largest side that is allowed.

    Raises:
        InvalidParams: it is too small, too large, or no multiple of `SIZE_STEP`.
    """
    is_allowed = MIN_SIDE <= pixels <= most and pixels % SIZE_STEP == 0
    problem = (
        f"{pixels} is not allowed; allowed: multiples of {SIZE_STEP} from {MIN_SIDE} to {most}"
    )
    _check(field, is_allowed, problem)


def _check(field: str, is_so: bool, problem: str) -> None:
    if not is_so:
        raise InvalidParams(field, problem)
