"""Raw jobs with prompts of items, for tests of the engine."""

from __future__ import annotations

from typing import Any

from neodim_sampling.parameters import ConstraintParams, StopParams, WarperParams
from neodim_sampling.prompt_items import ItemsPrompt, PromptItem, TextItem
from workers.contract.text_job import TextJob

SENTENCE = "The old cat sees a red house near the river."


def items_job(*items: PromptItem | str, **fields: Any) -> TextJob:
    """A greedy raw job that goes on with items; short unless its fields say otherwise.

    Args:
        items: strings are texts; none = `SENTENCE`.
        fields: of `TextJob`, and of `ItemsPrompt`.
    """
    own = {name: fields.pop(name) for name in ("echo", "attention", "is_changed") if name in fields}
    read = tuple(TextItem(text=each) if isinstance(each, str) else each for each in items)
    stops = fields.pop("stops", ())
    return TextJob(
        model="m",
        prompt=ItemsPrompt(items=read or (TextItem(text=SENTENCE),), **own),
        is_raw=True,
        stops=StopParams(strings=stops, takes_earliest=True, ends_each=True) if stops else None,
        **{
            "max_new_tokens": 12,
            "seed": 7,
            "warpers": WarperParams(top_k=1),
            "constraints": ConstraintParams(can_stop_early=True, can_be_empty=True),
            **fields,
        },
    )
