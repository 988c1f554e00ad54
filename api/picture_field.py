"""Pictures that requests have in them: the only place that decodes their base64."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from marshmallow import ValidationError, fields

from api.fields import Text, shown

BASE64 = ";base64"


class PictureFile(fields.String):
    """A picture's file: base64, with or without the head of a data URL, or bytes from a form."""

    default_error_messages = Text.default_error_messages

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, bytes):
            return value
        if not isinstance(value, str):
            raise ValidationError(f"must be a picture in base64, not {shown(value)}")
        if value.startswith("data:"):
            head, _, value = value.partition(",")
            if not head.lower().endswith(BASE64):
                raise ValidationError("must be a data URL with base64 in it")
        try:
            # Some programs break base64 into lines.
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            problem = "must be a picture in base64 or as a data URL"
            raise ValidationError(f"{problem}, not {shown(value)}") from None
