"""What importing the client brings along, and its version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import neodim_client
from workers.contract.settings import VERSION

LISTS_MODULES = "import neodim_client, sys; print(*sorted(sys.modules))"
SERVER_SIDE = {"api", "workers", "neodim_sampling", "torch", "transformers", "numpy", "PIL"}
SERVER_SIDE |= {"flask", "flask_smorest", "marshmallow", "celery", "redis", "msgspec", "gevent"}


def test_importing_the_client_loads_nothing_of_the_server() -> None:
    found = subprocess.check_output([sys.executable, "-c", LISTS_MODULES], text=True).split()

    packages = {name.partition(".")[0] for name in found}
    assert "httpx" in packages
    assert packages.isdisjoint(SERVER_SIDE)


def test_version_is_the_servers() -> None:
    assert neodim_client.__version__ == VERSION


def test_types_are_there_for_type_checkers() -> None:
    assert (Path(neodim_client.__file__).parent / "py.typed").exists()


def test_all_that_is_offered_exists() -> None:
    missing = [name for name in neodim_client.__all__ if not hasattr(neodim_client, name)]

    assert missing == []
