"""What a worker says of a model that it can never serve; apart, so that saying it loads nothing."""

from __future__ import annotations


class ModelUnusable(Exception):
    """The model that the settings name cannot be served; trying again changes nothing."""
