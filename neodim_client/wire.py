"""What the types of this package share on their way to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")

Json = Mapping[str, Any]
"""A JSON object."""


def given_fields(message: DataclassInstance) -> dict[str, Any]:
    """The fields of a dataclass that are not None, by name."""
    values = {each.name: getattr(message, each.name) for each in fields(message)}
    return {name: value for name, value in values.items() if value is not None}


def from_fields(kind: type[D], json: Json, **others: Any) -> D:
    """A dataclass whose fields have their names in JSON; what the object has beside them is left.

    A newer server may say more than this client knows.

    Args:
        kind: the dataclass.
        json: has every field that is not among the others.
        others: fields that need more than being taken over.

    Raises:
        KeyError: a field is missing.
    """
    names = [each.name for each in fields(kind) if each.name not in others]
    return kind(**{name: json[name] for name in names}, **others)
