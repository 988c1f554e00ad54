"""What the schemas of this protocol's requests share: unknown names mean nothing.

The vendor's clients send fields that their server alone knows, and newer ones than it does.
"""

from __future__ import annotations

from marshmallow import EXCLUDE

from api.request_schema import RequestSchema


class OpenSchema(RequestSchema):
    """A JSON object that may have more fields than are read."""

    class Meta(RequestSchema.Meta):
        """Unknown names are left out."""

        unknown = EXCLUDE
