"""What is done to a prompt of items so that models go on with it well."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from neodim_sampling.prompt_items import PromptItem, TextItem


def optimised(items: Sequence[PromptItem]) -> tuple[PromptItem, ...]:
    """Join neighbouring texts, and strip white space from the prompt's two ends.

    Controls go on acting on their characters; of one on stripped characters, the rest does.
    """
    joined: list[PromptItem] = []
    for item in items:
        last = joined[-1] if joined else None
        if isinstance(item, TextItem) and isinstance(last, TextItem):
            joined[-1] = _join(last, item)
        else:
            joined.append(item)
    if joined and isinstance(first := joined[0], TextItem):
        joined[0] = _part(first, len(first.text) - len(first.text.lstrip()), len(first.text))
    if joined and isinstance(last := joined[-1], TextItem):
        joined[-1] = _part(last, 0, len(last.text.rstrip()))
    return tuple(joined)


def _join(one: TextItem, other: TextItem) -> TextItem:
    moved = (replace(each, start=each.start + len(one.text)) for each in other.controls)
    return TextItem(text=one.text + other.text, controls=(*one.controls, *moved))


def _part(item: TextItem, start: int, stop: int) -> TextItem:
    """The characters from `start` up to `stop`, with what is left of the controls on them."""
    if stop - start == len(item.text):
        return item
    controls = []
    for each in item.controls:
        first = max(each.start, start)
        last = min(each.start + each.length, stop)
        if first < last:
            controls.append(replace(each, start=first - start, length=last - first))
    return TextItem(text=item.text[start:stop], controls=tuple(controls))
