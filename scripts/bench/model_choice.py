"""Which model is measured, and in what precision: the same for us and for every peer."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bench.machine import has_bfloat16
from workers.launcher.errors import BadFlag
from workers.launcher.model_files import find_model
from workers.models.gguf_import import import_gguf

ROOT = Path(__file__).resolve().parents[2]
PRECISIONS = ("float32", "bfloat16", "float16")
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What is measured.

    Args:
        source: directory, or name on the hub, that everybody loads; never a GGUF file.
        gguf: the GGUF file that it was made from, None = none is known.
        precision: of the weights and of the arithmetic.
        device: `cpu` or `cuda`.
    """

    source: str
    gguf: str | None
    precision: str
    device: str


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """The options of every bench for what is measured."""
    parser.add_argument(
        "--model", help="directory, .gguf file or hub name; default: the model that comes along"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=ROOT / "data",
        help="where de-quantised models are kept; default: the service's own",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        help="default: bfloat16 where the processor or card computes in it, else float32",
    )
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")


def choose_model(arguments: argparse.Namespace) -> ModelChoice:
    """The choice that the options make; de-quantises a GGUF file if that was not done before.

    Raises:
        BadFlag: there is no such model, or no such device.
    """
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise BadFlag("--device", "cuda", "no GPU was found; allowed: cpu")
    path = Path(arguments.model) if arguments.model else None
    name = str(path.resolve()) if path is not None and path.exists() else arguments.model
    found = find_model(name).source
    gguf = found if found.endswith(".gguf") else None
    source = str(import_gguf(Path(gguf), arguments.data_dir / "models")) if gguf else found
    precision = arguments.precision or default_precision(arguments.device)
    return ModelChoice(source, gguf, precision, arguments.device)


def described(arguments: argparse.Namespace, choice: ModelChoice) -> dict[str, Any]:
    """The options as a report gives them: what was measured, and not where files are kept."""
    options = {
        name: value for name, value in vars(arguments).items() if not isinstance(value, Path)
    }
    return {
        **options,
        "model": Path(choice.source).name,
        "gguf": choice.gguf and Path(choice.gguf).name,
        "precision": choice.precision,
    }


def default_precision(device: str) -> str:
    """The narrowest of bfloat16 and float32 that a device computes in."""
    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if has_bfloat16() else "float32"
