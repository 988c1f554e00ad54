"""An engine on a tiny model that reads pictures, and transformers' own reading of the same."""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import Any

import torch
from picture_files import encoded
from PIL import Image
from tiny_engine import TinyEngine
from torch import Tensor
from transformers import AutoModelForImageTextToText

from neodim_sampling.parameters import WarperParams
from neodim_sampling.prompt_items import (
    AttentionParams,
    IdsItem,
    ImageItem,
    ItemsPrompt,
    PromptItem,
    TextItem,
)
from neodim_sampling.text.codec import TextCodec
from workers.contract.settings import Settings
from workers.contract.text_job import TextJob
from workers.engine.engine import Engine
from workers.engine.generation import Generation
from workers.engine.model_path import open_model
from workers.models.llava import LlavaEye, read_eyesight
from workers.models.loader import LoadedModel, load_model
from workers.models.serving import preparer_of
from workers.models.visible_square import normalised, visible_square

N_TILES = 144
PLAIN = AttentionParams()


class SeeingEngine(TinyEngine):
    """An engine whose model reads pictures."""

    def __init__(
        self,
        directory: Path,
        *,
        slots: int = 4,
        max_length: int = 800,
        chunk: int = 1000,
        is_general: bool = False,
        is_running: bool = True,
    ) -> None:
        loaded = load(directory)
        assert isinstance(loaded.eye, LlavaEye)
        self.eye = loaded.eye
        self.codec = TextCodec(loaded.tokenizer)
        self.model = open_model(loaded.model, slots, max_length, is_general=is_general)
        self.preparer = preparer_of(loaded, self.codec, slots)
        self.died = threading.Event()
        self.engine = Engine(self.model, chunk, on_death=self.died.set)
        if is_running:
            self.engine.start()


def load(directory: Path) -> LoadedModel:
    return load_model(Settings(model=str(directory), precision="float32"))


@cache
def whole_model(directory: Path) -> Any:
    return AutoModelForImageTextToText.from_pretrained(directory, dtype=torch.float32).eval()


@torch.inference_mode()
def expected_log_probs(directory: Path, generation: Generation) -> Tensor:
    """[T, V] behind each token of a prompt and of what was generated, of transformers' model."""
    whole, prompt = whole_model(directory), generation.job.prompt
    assert isinstance(prompt, ItemsPrompt)
    eyesight = read_eyesight(str(directory), whole.config, {})
    pixels = [
        torch.from_numpy(normalised(visible_square(each, eyesight).pixels, eyesight))
        for each in prompt.items
        if isinstance(each, ImageItem)
    ]
    ids = [*generation.fitted.input_ids, *generation.sequences[0].row.generated]
    reply = whole(input_ids=torch.tensor([ids]), pixel_values=torch.stack(pixels))
    log_probs: Tensor = reply.logits[0].log_softmax(-1)
    return log_probs


def picture(*colours: str, size: tuple[int, int] = (60, 40), **fields: Any) -> ImageItem:
    """Two colours side by side."""
    image = Image.new("RGB", size, colours[0])
    image.paste(colours[-1], (size[0] // 2, 0, *size))
    return ImageItem(picture=encoded(image), **fields)


def items(*parts: str | tuple[int, ...] | ImageItem, **fields: Any) -> ItemsPrompt:
    found: list[PromptItem] = []
    for each in parts:
        if isinstance(each, str):
            found.append(TextItem(text=each))
        else:
            found.append(IdsItem(ids=each) if isinstance(each, tuple) else each)
    return ItemsPrompt(items=tuple(found), **fields)


def looking_job(
    *parts: str | tuple[int, ...] | ImageItem,
    echo: bool = False,
    attention: AttentionParams = PLAIN,
    **fields: Any,
) -> TextJob:
    """A job for the likeliest text behind these."""
    options: dict[str, Any] = {
        "max_new_tokens": 6,
        "seed": 7,
        "warpers": WarperParams(top_k=1),
        "log_probs": 0,
        **fields,
    }
    return TextJob(
        model="tiny-eyes", prompt=items(*parts, echo=echo, attention=attention), **options
    )
