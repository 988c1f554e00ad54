"""Pictures in prompts: rows of embeddings that are read in the place of some tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from torch import Tensor

from neodim_sampling.prompt_items import ImageItem, PromptItem
from neodim_sampling.text.tiles import Tiles
from workers.contract.errors import MissingCapability
from workers.engine.attention_control import Embed
from workers.engine.text_model import Inset


@dataclass(frozen=True)
class SeenPicture:
    """A picture as a model sees it.

    Args:
        tiles: its tokens.
        key: below 0; equal for pictures that the model cannot tell apart, and for no others.
        look: computes what the model makes of the picture, [n, H] for its n tokens.
    """

    tiles: Tiles
    key: int
    look: Callable[[], Tensor]

    @cached_property
    def rows(self) -> Tensor:
        """[n, H], the embeddings of its tokens; computed once, by the engine's thread."""
        return self.look()


@dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A picture within a prompt.

    Args:
        first: place of its first token.
        stop: place of the first token behind it.
        picture: what is there.
    """

    first: int
    stop: int
    picture: SeenPicture


class Eye(Protocol):
    """Sees pictures for one model."""

    def see(self, item: ImageItem) -> SeenPicture:
        """What the model will read of a picture; quick, and any thread may ask.

        Raises:
            InvalidParams: the file is no picture, or the crop lies outside of it.
        """
        ...


def see_pictures(items: Iterable[PromptItem], eye: Eye | None) -> list[SeenPicture]:
    """The pictures among a prompt's items, in their order.

    Args:
        items: the prompt.
        eye: the model's; None = it reads no pictures.

    Raises:
        MissingCapability: there is a picture, and the model reads none.
        InvalidParams: a file is no picture, or a crop lies outside of its picture.
    """
    pictures = [each for each in items if isinstance(each, ImageItem)]
    if not pictures:
        return []
    if eye is None:
        raise MissingCapability("prompt: this model does not read pictures")
    return [eye.see(each) for each in pictures]


def place_pictures(
    pictures: Sequence[SeenPicture], spans: Sequence[tuple[int, int]]
) -> tuple[PlacedPicture, ...]:
    """Pictures at the places of their tokens.

    Args:
        pictures: in the order of the prompt.
        spans: of each, the place of its first token and the one behind its last.
    """
    pairs = zip(pictures, spans, strict=True)
    return tuple(PlacedPicture(first, stop, each) for each, (first, stop) in pairs)


def insets_of(pictures: Iterable[PlacedPicture], start: int, stop: int) -> tuple[Inset, ...]:
    """What is read instead of the tokens from `start` up to `stop`, as a run of those needs it."""
    found = []
    for each in pictures:
        first, last = max(each.first, start), min(each.stop, stop)
        if first < last:
            rows = each.picture.rows[first - each.first : last - each.first]
            found.append(Inset(first - start, rows))
    return tuple(found)


def told_apart(tokens: Sequence[int], pictures: Iterable[PlacedPicture]) -> list[int]:
    """A text whose pictures differ where what they show does: all have the same tokens."""
    names = list(tokens)
    for each in pictures:
        names[each.first : each.stop] = [each.picture.key] * (each.stop - each.first)
    return names


def numbered(tokens: Sequence[int], pictures: Iterable[PlacedPicture]) -> list[int]:
    """A prompt of which each picture's tokens have numbers of their own: -1, less their places."""
    numbers = list(tokens)
    for each in pictures:
        numbers[each.first : each.stop] = [-1 - place for place in range(each.first, each.stop)]
    return numbers


def embedding_of(embed: Embed, pictures: Iterable[PlacedPicture]) -> Embed:
    """Looks up the input embeddings of tokens, and of a prompt's pictures by such numbers.

    Args:
        embed: does the same for tokens alone.
        pictures: of the prompt.
    """
    rows = {-1 - each.first - n: (each.picture, n) for each in pictures for n in _range_of(each)}

    def look_up(numbers: Sequence[int]) -> Tensor:
        found = embed([max(0, number) for number in numbers])
        for place, number in enumerate(numbers):
            if number < 0:
                picture, n = rows[number]
                found[place] = picture.rows[n]
        return found

    return look_up


def _range_of(placed: PlacedPicture) -> range:
    return range(placed.stop - placed.first)
