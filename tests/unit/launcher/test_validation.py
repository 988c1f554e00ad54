from __future__ import annotations

import json
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workers.contract.public_url import address_to_try
from workers.contract.settings import Settings
from workers.launcher.api_keys import all_keys
from workers.launcher.errors import BadFlag
from workers.launcher.listening import check_listening, is_loopback
from workers.launcher.model_files import ServedModel
from workers.launcher.validation import check_model, warnings_about

HUB = ServedModel("some/model", "model")


@pytest.fixture
def local(tmp_path: Path) -> ServedModel:
    (tmp_path / "config.json").write_text(json.dumps({"n_layer": 4}))
    return ServedModel(str(tmp_path), "local")


def refusal_of_model(model: ServedModel, **changed: Any) -> str:
    with pytest.raises(BadFlag) as refusal:
        check_model(replace(Settings(), **changed), model)
    return str(refusal.value)


@pytest.mark.parametrize("precision", ["original", "float32", "float16", "bfloat16"])
def test_plain_precisions_are_accepted(precision: str, local: ServedModel) -> None:
    check_model(Settings(precision=precision), local)


@pytest.mark.parametrize("precision", ["float4", "int8", "gptq2", "gptq4", "gptq8"])
def test_quantised_precisions_are_not_yet_supported(precision: str) -> None:
    message = refusal_of_model(HUB, precision=precision)

    assert message == (
        f'--precision: "{precision}" is not yet supported; '
        "allowed: original, float32, float16, bfloat16"
    )


def test_a_gptq_checkpoint_is_not_yet_supported(local: ServedModel) -> None:
    Path(local.source, "quantize_config.json").write_text("{}")

    message = refusal_of_model(local)

    assert message.startswith("--model:")
    assert "not yet supported" in message


def test_too_many_layers_are_refused_when_the_model_is_local(local: ServedModel) -> None:
    message = refusal_of_model(local, layers="999")

    assert message == '--layers: "999" is too many; allowed: at most 4, the model\'s layers'


@pytest.mark.parametrize("key", ["max_position_embeddings", "n_positions", "seq_length"])
def test_more_tokens_than_a_local_model_can_hold_are_refused(local: ServedModel, key: str) -> None:
    Path(local.source, "config.json").write_text(json.dumps({key: 2048}))

    message = refusal_of_model(local, max_length=2049)
    check_model(Settings(max_length=2048), local)

    assert message == "--max-length: 2049 is too many; allowed: at most 2048, the model's context"


def test_any_number_of_tokens_passes_where_the_model_names_none(local: ServedModel) -> None:
    check_model(Settings(max_length=999_999), local)
    check_model(Settings(max_length=999_999), HUB)


def test_all_the_layers_in_one_place_are_accepted(local: ServedModel) -> None:
    check_model(Settings(layers="4"), local)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"group_size": 64, "safetensors": False}, "--group-size, --safetensors: ignored"),
        ({"model_basename": "x"}, "--model-basename: ignored"),
        ({"double_quantization": False}, "--double-quantization: ignored"),
        ({"quantization_type": "fp4"}, "--quantization-type: ignored"),
    ],
)
def test_options_of_another_precision_are_ignored_with_a_line(
    changed: dict[str, Any], expected: str
) -> None:
    warnings = warnings_about(replace(Settings(), **changed), HUB)

    assert [warning[: len(expected)] for warning in warnings] == [expected]


def test_nothing_is_said_of_default_settings() -> None:
    warnings = warnings_about(Settings(), HUB)

    assert warnings == []


def test_a_revision_of_a_local_model_is_ignored_with_a_line(local: ServedModel) -> None:
    warnings = warnings_about(Settings(model_revision="main"), local)

    assert warnings == ["--model-revision: ignored, for models from the hub only"]


def test_one_loud_line_warns_of_an_open_address_without_a_key() -> None:
    open_to_all = Settings(listen_address="0.0.0.0")

    warnings = warnings_about(open_to_all, HUB)
    with_key = warnings_about(replace(open_to_all, api_key=("k",)), HUB)

    assert len(warnings) == 1
    assert warnings[0].startswith("WARNING: everyone who reaches 0.0.0.0:8787")
    assert with_key == []


def test_a_line_warns_of_nodes_that_are_told_an_address_of_this_host_alone() -> None:
    everywhere = Settings(
        listen_address="0.0.0.0", api_key=("k",), node_url=("http://127.0.0.1:6000",)
    )

    warnings = warnings_about(everywhere, HUB)
    with_url = warnings_about(replace(everywhere, public_url="http://example.org"), HUB)

    assert [line.split(":")[0] for line in warnings] == ["--public-url", "--node-url"]
    assert [line.split(":")[0] for line in with_url] == ["--node-url"]


def test_a_line_warns_of_nodes_that_do_not_know_the_keys() -> None:
    settings = Settings(node_url=("http://127.0.0.1:6000",))

    assert warnings_about(settings, HUB) == []
    assert "keys" in warnings_about(replace(settings, api_key=("k",)), HUB)[0]


def test_keys_come_from_flags_and_file_each_once(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# ours\nb\n\n  c  \na\n")

    keys = all_keys(Settings(api_key=("a",), api_keys_file=str(file)))

    assert keys == ("a", "b", "c")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "has no key in it"),
        (b"# nothing\n\n", "has no key in it"),
        (b"good\ntwo words\n", "line 2 is no key"),
        (b"\xff\xfe", "is no text file"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_without_keys_is_refused(
    tmp_path: Path, content: bytes | None, expected: str
) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(BadFlag) as refusal:
        all_keys(Settings(api_keys_file=str(file)))

    assert str(refusal.value).startswith(f'--api-keys-file: "{file}" {expected}')


def test_a_port_in_use_is_refused_and_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(BadFlag) as refusal:
            check_listening("127.0.0.1", port)

    assert str(refusal.value).startswith(f"--listen-port: {port} is already in use on 127.0.0.1")


def test_a_port_that_becomes_free_in_time_is_waited_for() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        release = threading.Timer(0.3, taken.close)
        release.start()

        check_listening("127.0.0.1", port, patience_s=30)

        release.join()


def test_a_free_port_is_left_free() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    check_listening("127.0.0.1", port)
    check_listening("127.0.0.1", port)


@pytest.mark.parametrize("address", ["not an address", "300.1.1.1", "192.0.2.1", "a" * 300])
def test_an_address_that_is_not_this_hosts_is_refused(address: str) -> None:
    with pytest.raises(BadFlag) as refusal:
        check_listening(address, 0)

    assert str(refusal.value).startswith("--listen-address:")


def test_loopback_addresses_are_known() -> None:
    found = [is_loopback(address) for address in ("127.0.0.1", "127.1.2.3", "localhost", "0.0.0.0")]

    assert found == [True, True, True, False]


@pytest.mark.parametrize(
    ("address", "expected"),
    [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"), ("10.0.0.1", "10.0.0.1")],
)
def test_an_address_for_all_is_tried_at_this_host(address: str, expected: str) -> None:
    host = address_to_try(address)

    assert host == expected
