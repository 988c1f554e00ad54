from __future__ import annotations

from pathlib import Path

import pytest

from workers.launcher.config_file import read_config
from workers.launcher.errors import BadFlag


def written(directory: Path, text: str) -> Path:
    path = directory / "neodim.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal_of(path: Path) -> str:
    with pytest.raises(BadFlag) as refusal:
        read_config(path)
    message = str(refusal.value)
    assert len(message.splitlines()) == 1
    return message


def test_keys_are_read_with_dashes_and_with_underscores(tmp_path: Path) -> None:
    path = written(tmp_path, 'listen-port = 80\nfused_mlp = true\nlayers = "0,a"\n')

    values = read_config(path)

    assert values == {"listen_port": 80, "fused_mlp": True, "layers": "0,a"}


def test_one_key_or_a_list_of_keys_may_be_given(tmp_path: Path) -> None:
    one = read_config(written(tmp_path, 'api-key = "a"'))
    many = read_config(written(tmp_path, 'api-key = ["a", "b"]'))

    assert one == {"api_key": ("a",)}
    assert many == {"api_key": ("a", "b")}


def test_relative_paths_start_from_the_files_directory(tmp_path: Path) -> None:
    path = written(tmp_path, 'data-dir = "d"\nmodel = "./m"\n')

    values = read_config(path)

    assert values == {"data_dir": str(tmp_path / "d"), "model": str(tmp_path / "m")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("listen-prot = 1", "listen-prot: no such setting; did you mean listen-port?"),
        ("model_name = 'x'", "model_name: no such setting"),
        ("config = 'x'", "config: no such setting"),
        ("[engine]\nslots = 1", "engine: no such setting"),
        ("slots = 'x'", 'slots: "x" is not allowed; allowed: a whole number from 1 to 1024'),
        ("slots = true", "slots: True is not allowed; allowed: a whole number from 1 to 1024"),
        ("slots = 1.0", "slots: 1.0 is not allowed; allowed: a whole number from 1 to 1024"),
        ("slots = 0", "slots: 0 is not allowed; allowed: a whole number from 1 to 1024"),
        ("fused-mlp = 'true'", 'fused-mlp: "true" is not allowed; allowed: true, false'),
        ("fused-mlp = 1", "fused-mlp: 1 is not allowed; allowed: true, false"),
        ("layers = 1", "layers: 1 is not text; allowed: text in quotes"),
        ("layers = 'a,a'", 'layers: "a,a" is not allowed'),
        ("precision = 'x'", 'precision: "x" is not allowed; allowed: original, float32'),
        ("api-key = [1]", "api-key: 1 is not text"),
        ("body-limit-bytes = 1\nbody_limit_bytes = 1", "body_limit_bytes: is there twice"),
    ],
)
def test_a_bad_key_is_refused_with_the_file_and_the_key(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = written(tmp_path, text if "bytes" not in text else text.replace("= 1", "= 2048"))

    message = refusal_of(path)

    assert message.startswith(f"{path}: {expected}")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    message = refusal_of(tmp_path / "none.toml")

    expected = f'--config: "{tmp_path}/none.toml" cannot be read: No such file or directory; '
    assert message == expected + "allowed: a TOML file with settings"


@pytest.mark.parametrize("content", [b"slots = ", b"\xff\xfe", b"= 1\n= 2"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)

    message = refusal_of(path)

    assert message.startswith(f'--config: "{path}" is not TOML: ')
    assert message.endswith("; allowed: a TOML file with settings")
