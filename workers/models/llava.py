"""Models of LLaVA's kind (arXiv:2304.08485): what of them is supported, and how one comes apart.

A vision tower and a projector make rows of embeddings of a picture, which the language model
reads in the place of tokens. The language model is served like any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.image_processing_base import ImageProcessingMixin

from neodim_sampling.prompt_items import ImageItem
from neodim_sampling.text.tiles import Area, Tiles, cut_in_tiles
from workers.engine.pictures import SeenPicture
from workers.models.unusable import ModelUnusable
from workers.models.visible_square import Eyesight, VisibleSquare, normalised, visible_square

KIND = "llava"
"""Value of `config.model_type`."""

TOWERS = {"clip_vision_model": True, "siglip_vision_model": False}
"""Supported towers, and whether they have a token for the whole picture in front of the tiles."""

CAN_BE_TIED = ("llama", "xglm")
"""Language models whose output weights may be the embeddings: of others transformers 5.24 does not
find those within a model of this kind."""

BLACK_TO_WHITE = 1 / 255


class LlavaEye:
    """Sees pictures for one model.

    Args:
        body: transformers' `LlavaModel`; of it, the tower and the projector are used.
        eyesight: how the tower wants its pictures.
    """

    def __init__(self, body: Any, eyesight: Eyesight) -> None:
        self._body = body
        self._eyesight = eyesight
        config = body.config
        self._token = config.image_token_id
        self._per_side = config.vision_config.image_size // config.vision_config.patch_size
        self._has_whole = config.vision_feature_select_strategy == "full" and _has_whole(config)

    def see(self, item: ImageItem) -> SeenPicture:
        """What the language model will read of a picture.

        Raises:
            InvalidParams: the file is no picture, or the crop lies outside of it.
        """
        square = visible_square(item, self._eyesight)
        digest = hashlib.sha256(square.pixels.tobytes()).digest()
        return SeenPicture(
            tiles=Tiles(self._token, self._areas(square.area)),
            key=-1 - int.from_bytes(digest),
            look=partial(self._look, square),
        )

    def _areas(self, square: Area) -> tuple[Area, ...]:
        """What each token stands for."""
        tiles = cut_in_tiles(square, self._per_side)
        return (square, *tiles) if self._has_whole else tiles

    @torch.inference_mode()
    def _look(self, square: VisibleSquare) -> Tensor:
        """[n, H], what tower and projector make of a picture."""
        weights = self._body.multi_modal_projector.linear_1.weight
        pixels = torch.from_numpy(normalised(square.pixels, self._eyesight))[None]
        seen = self._body.get_image_features(pixels.to(weights), return_dict=True)
        rows: Tensor = seen.pooler_output[0]
        return rows


def check_vision(config: Any) -> None:
    """Refuse a model whose vision is not computed as it is here.

    Args:
        config: of a model of this kind.

    Raises:
        ModelUnusable: it is not supported.
    """
    vision, language = config.vision_config, config.text_config
    if vision.model_type not in TOWERS:
        raise ModelUnusable(
            f"--model: vision towers of type {vision.model_type} are not supported; "
            f"supported are {', '.join(TOWERS)}"
        )
    if config.vision_feature_select_strategy == "default" and not _has_whole(config):
        raise ModelUnusable(
            f"--model: vision_feature_select_strategy: default would leave out the first tile of "
            f"a {vision.model_type}; allowed: full"
        )
    if not 0 <= config.image_token_id < language.vocab_size:
        raise ModelUnusable(
            f"--model: image_token_index: {config.image_token_id} is no token of the language "
            f"model; allowed: 0 to {language.vocab_size - 1}"
        )
    if config.tie_word_embeddings and language.model_type not in CAN_BE_TIED:
        raise ModelUnusable(
            f"--model: a {language.model_type} as the language model of {KIND} cannot share its "
            f"embeddings with its output; those that can are {', '.join(CAN_BE_TIED)}"
        )


def take_apart(whole: Any, eyesight: Eyesight) -> tuple[Any, LlavaEye]:
    """The language model of a loaded model, and what sees pictures for it.

    Args:
        whole: transformers' `LlavaForConditionalGeneration`, in evaluation mode on its device;
            not to be used by anybody else afterwards.
        eyesight: how its tower wants its pictures.

    Returns:
        A causal language model with the loaded weights, and the eye.
    """
    with torch.device("meta"):
        language: Any = AutoModelForCausalLM.from_config(whole.config.text_config)
    setattr(language, language.base_model_prefix, whole.model.language_model)
    language.set_output_embeddings(whole.get_output_embeddings())
    language.generation_config = whole.generation_config
    # Otherwise the eye would keep the weights in memory that the engine packs anew.
    whole.model.language_model = None
    return language.eval(), LlavaEye(whole.model, eyesight)


def read_eyesight(source: str, config: Any, hub: Mapping[str, Any]) -> Eyesight:
    """How a model wants its pictures, as the files beside it say.

    Args:
        source: directory or hub name.
        config: of the model.
        hub: what else says where to look.

    Raises:
        OSError: there is no such file.
        ModelUnusable: a value in it is not what it should be.
    """
    found, _ = ImageProcessingMixin.get_image_processor_dict(source, **hub)
    is_scaled, is_normalised = found.get("do_rescale", True), found.get("do_normalize", True)
    try:
        return Eyesight(
            side=config.vision_config.image_size,
            resampling=Image.Resampling(found.get("resample", Image.Resampling.BICUBIC)),
            scale=float(found.get("rescale_factor", BLACK_TO_WHITE)) if is_scaled else 1.0,
            mean=_colours(found["image_mean"]) if is_normalised else (0.0, 0.0, 0.0),
            deviation=_colours(found["image_std"]) if is_normalised else (1.0, 1.0, 1.0),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelUnusable(f"--model: preprocessor_config.json cannot be used: {error}") from error


def _colours(values: Any) -> tuple[float, float, float]:
    red, green, blue = map(float, values)
    return red, green, blue


def _has_whole(config: Any) -> bool:
    return TOWERS[config.vision_config.model_type]
