"""GGUF files: de-quantised once into a directory of safetensors, which loads in seconds."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

log = logging.getLogger(__name__)

HASHED_BYTES = 1024 * 1024


def import_gguf(file: Path, models_dir: Path) -> Path:
    """The directory with a GGUF file's model in float32; made when it is not there yet.

    Args:
        file: the GGUF file.
        models_dir: where such directories are kept, named by the file's name and content.

    Raises:
        OSError: the file cannot be read, or the directory not be written.
        ValueError: transformers cannot read this kind of GGUF file.
    """
    target = models_dir / f"{file.stem}-{_fingerprint(file)}"
    if target.is_dir():
        return target
    log.warning("de-quantising %s, once; this takes about 20 s per 100 MB", file.name)
    models_dir.mkdir(parents=True, exist_ok=True)
    # Written aside and renamed: a start that is cut short leaves nothing that looks complete.
    unfinished = Path(tempfile.mkdtemp(dir=models_dir, prefix=".import-"))
    try:
        _convert(file, unfinished)
        unfinished.rename(target)
    except OSError:
        # Another worker may have been faster; its result is the same.
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


def _convert(file: Path, directory: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.float32,
    )
    model.save_pretrained(directory)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(directory)


def _fingerprint(file: Path) -> str:
    """A name for the file's content: size, beginning and end, as hashing gigabytes takes long."""
    digest = hashlib.sha256(str(file.stat().st_size).encode())
    with file.open("rb") as stream:
        digest.update(stream.read(HASHED_BYTES))
        stream.seek(max(0, file.stat().st_size - HASHED_BYTES))
        digest.update(stream.read(HASHED_BYTES))
    return digest.hexdigest()[:16]
