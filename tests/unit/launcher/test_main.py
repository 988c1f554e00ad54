from __future__ import annotations

import socket
from pathlib import Path

import pytest

from workers.contract.settings import option_fields
from workers.launcher.__main__ import main
from workers.launcher.option_values import flag_of


def test_the_version_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--version"])

    assert (status, capsys.readouterr().out) == (0, "0.14\n")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_flag(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([flag])

    text = capsys.readouterr().out
    assert status == 0
    assert all(f"  {flag_of(option)} " in text for option in option_fields())
    assert max(len(line) for line in text.splitlines()) <= 100


@pytest.mark.parametrize(
    "argv",
    [
        ["--layers=a,a"],
        ["--double-quantization=yes"],
        ["--layers=999"],
        ["--precision=int8"],
        ["--listen-address=nowhere.invalid"],
        ["--nothing"],
        ["--config=/none"],
    ],
)
def test_a_bad_flag_ends_the_start_with_one_line(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(argv)

    output = capsys.readouterr()
    assert status == 2
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert argv[0].partition("=")[0] in output.err


@pytest.mark.parametrize(
    "argv",
    [
        ["--layers=a,a"],
        ["--slots=0"],
        ["--group-size=0"],
        ["--fused-mlp=1"],
        ["--precision=int8"],
        ["--precision=x"],
        ["--max-length=999999"],
        ["--model=/none"],
        ["--model=/dev/null"],
        ["--config=/none"],
        ["--config=/dev"],
        ["--api-key=a b"],
        ["--api-keys-file=/none"],
        ["--api-keys-file=/dev/null"],
        ["--data-dir=/dev/null/x"],
        ["--listen-address=192.0.2.1"],
        ["--redis-url=nowhere"],
        ["--redis-url=redis://127.0.0.1:1"],
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_what_is_allowed(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    status = main([f"--data-dir={tmp_path}", f"--listen-port={port}", *argv])

    error = capsys.readouterr().err
    assert status in (1, 2)
    assert len(error.splitlines()) == 1
    assert error.startswith(argv[0].partition("=")[0] + ":")
    assert "; allowed: " in error


def test_a_redis_that_cannot_be_used_ends_the_start_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    status = main(
        [f"--data-dir={tmp_path}", f"--listen-port={port}", "--redis-url=redis://127.0.0.1:1/0"]
    )

    error = capsys.readouterr().err
    assert status == 1
    assert len(error.splitlines()) == 1
    assert error.startswith("--redis-url: Redis at redis://127.0.0.1:1/0 cannot be used")
