"""Fields that only the standard's requests have: messages, prompts, stops."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields

from api.fields import REQUIRED, Flag, Object, shown
from api.request_schema import RequestSchema
from neodim_sampling.prompts import ChatMessage

ROLES = ("system", "user", "assistant", "tool")
OTHER_NAMES = {"developer": "system"}
"""Roles that OpenAI's newer models call otherwise; chat templates know the old name."""
MAX_MESSAGES = 10_000
MAX_STOPS = 16
MAX_PROMPTS = 1_000
MESSAGE_FIELDS = frozenset({"role", "content", "name", "tool_call_id"})


class Messages(fields.Field[tuple[ChatMessage, ...]]):
    """A conversation: objects with a role and a content, which is a string or text parts."""

    default_error_messages = REQUIRED

    def _deserialize(
        self, value: Any, attr: Any, data: Any, **kwargs: Any
    ) -> tuple[ChatMessage, ...]:
        if not isinstance(value, list) or not value:
            raise ValidationError(f"must be a non-empty list of messages, not {_said(value)}")
        if len(value) > MAX_MESSAGES:
            raise ValidationError(f"must have at most {MAX_MESSAGES} entries, not {len(value)}")
        return tuple(_message(f"entry {n}", each) for n, each in enumerate(value))


class Prompts(fields.Field[tuple[str | tuple[int, ...], ...]]):
    """A prompt, or several: strings or lists of token ids."""

    default_error_messages = REQUIRED

    def _deserialize(
        self, value: Any, attr: Any, data: Any, **kwargs: Any
    ) -> tuple[str | tuple[int, ...], ...]:
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or not value:
            allowed = "a string, token ids, or a non-empty list of one of them"
            raise ValidationError(f"must be {allowed}, not {_said(value)}")
        if len(value) > MAX_PROMPTS and not _is_id(value[0]):
            raise ValidationError(f"must be at most {MAX_PROMPTS} prompts, not {len(value)}")
        if all(isinstance(each, str) for each in value):
            return tuple(value)
        if all(map(_is_id, value)):
            return (tuple(map(int, value)),)
        if all(isinstance(each, list) and each and all(map(_is_id, each)) for each in value):
            return tuple(tuple(map(int, each)) for each in value)
        raise ValidationError("must be strings, or token ids from 0 on, or lists of those")


class Stops(fields.Field[tuple[str, ...]]):
    """A stop string, or up to 16."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> tuple[str, ...]:
        strings = [value] if isinstance(value, str) else value
        if not isinstance(strings, list) or not all(isinstance(each, str) for each in strings):
            raise ValidationError(f"must be a string or a list of strings, not {_said(value)}")
        if len(strings) > MAX_STOPS:
            raise ValidationError(f"must be at most {MAX_STOPS} strings, not {len(strings)}")
        if not all(strings):
            raise ValidationError("must be strings that are not empty")
        return tuple(strings)


class StreamOptions(fields.Field[bool]):
    """What a stream has beside its text: whether its usage once more at the end."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> bool:
        loaded: Mapping[str, Any] = StreamOptionsSchema().load(Object().deserialize(value))
        return bool(loaded["include_usage"])


class StreamOptionsSchema(RequestSchema):
    """The fields of `stream_options`."""

    include_usage = Flag(load_default=False)


def _message(place: str, value: Any) -> ChatMessage:
    if not isinstance(value, dict):
        raise ValidationError(f"{place} must be an object, not {shown(value)}")
    given = {name: each for name, each in value.items() if each is not None or name == "content"}
    unknown = sorted(given.keys() - MESSAGE_FIELDS)
    if unknown:
        raise ValidationError(f"{place}: {unknown[0][:60]!r} is not a known field of a message")
    role = given.get("role")
    role = OTHER_NAMES.get(role, role) if isinstance(role, str) else role
    if role not in ROLES:
        raise ValidationError(f"{place}: role must be one of {', '.join(ROLES)}, not {shown(role)}")
    return ChatMessage(
        role=role,
        content=_content(place, given.get("content")),
        name=_text(place, "name", given),
        tool_call_id=_text(place, "tool_call_id", given),
    )


def _content(place: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        problem = f"content must be a string or a list of text parts, not {_said(value)}"
        raise ValidationError(f"{place}: {problem}")
    return "".join(_part(f"{place}: content part {n}", each) for n, each in enumerate(value))


def _part(place: str, value: Any) -> str:
    is_text = isinstance(value, dict) and value.keys() == {"type", "text"}
    if is_text and value["type"] == "text" and isinstance(value["text"], str):
        return str(value["text"])
    raise ValidationError(f'{place} must be {{"type": "text", "text": "..."}}; only text is read')


def _text(place: str, name: str, given: Mapping[str, Any]) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise ValidationError(f"{place}: {name} must be a string, not {shown(value)}")
    return value


def _is_id(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer() and 0 <= value < 2**31
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _said(value: Any) -> str:
    return json.dumps(value) if value in ([], {}, None) else shown(value)
