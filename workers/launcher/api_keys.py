"""The keys that clients must send, from flags and from the file."""

from __future__ import annotations

import re
from pathlib import Path

from workers.contract.settings import Settings
from workers.launcher.errors import BadFlag

FLAG = "--api-keys-file"
ALLOWED = "allowed: a file with one key a line"


def all_keys(settings: Settings) -> tuple[str, ...]:
    """Every key, each once; empty when clients need none.

    Raises:
        BadFlag: the file cannot be read, holds no key, or a line that cannot be one.
    """
    from_file = () if settings.api_keys_file is None else _read(Path(settings.api_keys_file))
    return tuple(dict.fromkeys((*settings.api_key, *from_file)))


def _read(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadFlag(FLAG, str(path), f"cannot be read: {error.strerror}; {ALLOWED}") from error
    except UnicodeDecodeError as error:
        raise BadFlag(FLAG, str(path), f"is no text file; {ALLOWED}") from error
    keys = [(n, line.strip()) for n, line in enumerate(lines, start=1)]
    keys = [(n, key) for n, key in keys if key and not key.startswith("#")]
    for n, key in keys:
        if not re.fullmatch(r"[!-~]+", key):
            raise BadFlag(
                FLAG, str(path), f"line {n} is no key; allowed: visible ASCII characters, no spaces"
            )
    if not keys:
        raise BadFlag(FLAG, str(path), f"has no key in it; {ALLOWED}")
    return tuple(key for _, key in keys)
