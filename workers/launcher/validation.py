"""Checks that need more than one flag or a look at this host, before anything is started."""

from __future__ import annotations

from workers.contract.settings import Settings, default_of, option_fields
from workers.launcher.api_keys import all_keys
from workers.launcher.errors import BadFlag
from workers.launcher.layer_split import check_layers, parse_layers
from workers.launcher.listening import is_loopback
from workers.launcher.model_files import ServedModel, count_layers, count_positions, is_gptq
from workers.launcher.option_values import flag_of

SUPPORTED_PRECISIONS = ("original", "float32", "float16", "bfloat16")
FOR_GPTQ = (
    "model_basename",
    "group_size",
    "true_sequential",
    "safetensors",
    "fused_attention",
    "fused_mlp",
)
FOR_FLOAT4 = ("quantization_type", "double_quantization")


def check_model(settings: Settings, model: ServedModel) -> None:
    """Refuse what the model does not have, or needs a way to load it that is not there yet.

    Args:
        settings: what was asked for.
        model: what `--model` names.

    Raises:
        BadFlag: a precision, a checkpoint or a split that is not supported yet, or more layers or
            tokens than the model has.
    """
    if settings.precision not in SUPPORTED_PRECISIONS:
        allowed = ", ".join(SUPPORTED_PRECISIONS)
        problem = f"is not yet supported; allowed: {allowed}"
        raise BadFlag("--precision", settings.precision, problem)
    if is_gptq(model):
        problem = "is a GPTQ checkpoint, not yet supported; allowed: a model with plain weights"
        raise BadFlag("--model", model.source, problem)
    _check_length(settings.max_length, model)
    names_layers = any(parse_layers(settings.layers))
    check_layers(settings.layers, count_layers(model) if names_layers else None)


def _check_length(max_length: int | None, model: ServedModel) -> None:
    """Refuse more tokens than a local model can hold; others are known once they are loaded."""
    n_positions = None if max_length is None else count_positions(model)
    if max_length is not None and n_positions is not None and max_length > n_positions:
        problem = f"is too many; allowed: at most {n_positions}, the model's context"
        raise BadFlag("--max-length", max_length, problem)


def warnings_about(settings: Settings, model: ServedModel) -> list[str]:
    """What the user should read although it does not stop the start.

    Args:
        settings: what was asked for.
        model: what `--model` names.
    """
    warnings = []
    if not is_loopback(settings.listen_address) and not all_keys(settings):
        warnings.append(
            f"WARNING: everyone who reaches {settings.listen_address}:{settings.listen_port} can "
            "use this service; set --api-key or --api-keys-file"
        )
    if settings.node_url and settings.public_url is None and _is_any(settings.listen_address):
        warnings.append("--public-url: not given, so nodes are told an address of this host alone")
    if settings.node_url and all_keys(settings):
        warnings.append(
            "--node-url: a node does not know this service's keys, so what it forwards is refused"
        )
    if unused := _changed(settings, FOR_GPTQ):
        warnings.append(f"{unused}: ignored, for --precision=gptq2, gptq4 and gptq8 only")
    if unused := _changed(settings, FOR_FLOAT4):
        warnings.append(f"{unused}: ignored, for --precision=float4 only")
    if model.is_local and settings.model_revision is not None:
        warnings.append("--model-revision: ignored, for models from the hub only")
    return warnings


def _is_any(address: str) -> bool:
    """Whether listening on the address means listening on every one of this host."""
    return address in ("0.0.0.0", "::")


def _changed(settings: Settings, names: tuple[str, ...]) -> str:
    """The flags among these that do not have their default value."""
    options = [option for option in option_fields() if option.name in names]
    changed = [each for each in options if getattr(settings, each.name) != default_of(each)]
    return ", ".join(flag_of(each) for each in changed)
