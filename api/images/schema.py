"""The fields of image requests and answers: types and defaults; ranges belong to the job."""

from __future__ import annotations

from marshmallow import Schema, fields

from api.fields import Choice, Number, Text, Whole
from api.picture_field import PictureFile
from api.request_schema import RequestSchema
from workers.contract.image_job import (
    MAX_GUIDANCE,
    MAX_PICTURES,
    MAX_STEPS,
    MIN_SIDE,
    ResponseFormat,
)
from workers.contract.text_job import SEED_LIMIT

DEFAULT_STEPS = 30
MAX_PROMPT_CHARACTERS = 32_000
MAX_USER_CHARACTERS = 1_000


class ImageRequestSchema(RequestSchema):
    """What all requests for pictures share."""

    model = Text(load_default=None, metadata={"description": "The image model; there is one."})
    prompt = Text(
        required=True,
        max_length=MAX_PROMPT_CHARACTERS,
        metadata={"description": "What to show."},
    )
    negative_prompt = Text(
        load_default="",
        max_length=MAX_PROMPT_CHARACTERS,
        metadata={"description": "What not to show."},
    )
    n = Whole(
        load_default=1,
        metadata={"description": "Pictures to draw.", "minimum": 1, "maximum": MAX_PICTURES},
    )
    size = Text(
        load_default=None,
        metadata={"description": "Width and height in pixels.", "example": "512x512"},
    )
    width = Whole(
        load_default=None,
        metadata={"description": "The same apart, with height.", "minimum": MIN_SIDE},
    )
    height = Whole(
        load_default=None,
        metadata={"description": "The same apart, with width.", "minimum": MIN_SIDE},
    )
    response_format = Choice(
        ResponseFormat,
        load_default=ResponseFormat.URL,
        metadata={"description": "Whether pictures are linked to, or in the answer itself."},
    )
    seed = Whole(
        low=0,
        high=SEED_LIMIT - 1,
        load_default=None,
        metadata={"description": "Picture i is drawn with seed + i; none: each request differs."},
    )
    steps = Whole(
        load_default=DEFAULT_STEPS,
        metadata={"description": "Denoising steps.", "minimum": 1, "maximum": MAX_STEPS},
    )
    guidance_scale = Number(
        load_default=None,
        metadata={
            "description": f"How closely to follow the prompt, 0 to {MAX_GUIDANCE:g}; none: as "
            "the model has it."
        },
    )
    strength = Number(
        load_default=None,
        metadata={"description": "How much of the source is drawn anew: 0 < x <= 1."},
    )
    user = Text(
        load_default="",
        max_length=MAX_USER_CHARACTERS,
        metadata={"description": "Who asks; kept with the job."},
    )


class ImageGenerationSchema(ImageRequestSchema):
    """A request of `POST /v1/images/generations`."""

    file = PictureFile(
        load_default=b"",
        metadata={"description": 'A picture to change, in base64 or as a data URL; "" = none.'},
    )


class ImageEditSchema(ImageRequestSchema):
    """A request of `POST /v1/images/edits`, whose pictures are base64 where it is JSON."""

    image = PictureFile(
        required=True, metadata={"description": "The picture to change.", "format": "binary"}
    )
    mask = PictureFile(
        load_default=b"",
        metadata={
            "description": "A PNG of the same size; only where it is fully transparent the "
            "picture changes.",
            "format": "binary",
        },
    )


class ImageDataSchema(Schema):
    """One picture."""

    b64_json = fields.String(metadata={"description": 'The PNG in base64, "" where a url is.'})
    url = fields.String(metadata={"description": 'Where the PNG is, "" where b64_json is.'})
    revised_prompt = fields.String(metadata={"description": "The prompt used."})


class ImagesSchema(Schema):
    """The answer to a request for pictures; documentation, `renderer` writes it."""

    code = fields.Integer(metadata={"description": "0"})
    message = fields.String(metadata={"description": "success"})
    created = fields.Integer(metadata={"description": "Seconds since the epoch."})
    data = fields.List(fields.Nested(ImageDataSchema))
