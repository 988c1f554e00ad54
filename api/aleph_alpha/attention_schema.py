"""What all of this protocol's requests share that a model reads: which one, and how it attends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.aleph_alpha.open_schema import OpenSchema
from api.fields import Flag, Number, Text, says
from neodim_sampling.prompt_items import AttentionParams


class AttentionSchema(OpenSchema):
    """A request that a model reads."""

    model = Text(required=True, metadata=says("Which model, as /models_available lists them."))
    contextual_control_threshold = Number(
        low=-1,
        high=1,
        load_default=None,
        metadata=says("Similarity from which on controls reach other tokens; null = they do not."),
    )
    control_log_additive = Flag(
        load_default=True, metadata=says("Whether controls multiply the weight of attention.")
    )


def attention_of(fields: Mapping[str, Any]) -> AttentionParams:
    """How the controls of a request's prompt act."""
    return AttentionParams(
        is_log_additive=fields["control_log_additive"],
        threshold=fields["contextual_control_threshold"],
    )
