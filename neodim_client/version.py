"""The package's version: that of the server that it belongs to."""

from __future__ import annotations

VERSION = "0.14"
