"""The request and the answer of `/explain`: which parts of a prompt speak for a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from neodim_client.controls import ControlTokenOverlap
from neodim_client.prompt import Prompt, prompt_json
from neodim_client.wire import Json, from_fields, given_fields


class PromptGranularity(StrEnum):
    """Parts that a prompt's texts are scored by."""

    TOKEN = "token"
    WORD = "word"
    SENTENCE = "sentence"
    PARAGRAPH = "paragraph"


@dataclass(frozen=True)
class CustomGranularity:
    """Parts between delimiters of one's own.

    Args:
        delimiter: the text between two parts.
    """

    delimiter: str


class TargetGranularity(StrEnum):
    """Whether a target is explained as a whole, or each of its tokens."""

    COMPLETE = "complete"
    TOKEN = "token"


class ExplanationPostprocessing(StrEnum):
    """What becomes of each score."""

    NONE = "none"
    ABSOLUTE = "absolute"
    SQUARE = "square"


@dataclass(frozen=True)
class ExplanationRequest:
    """Asks which parts of a prompt speak for a target. None = the server's default.

    Args:
        prompt: the prompt.
        target: the text behind it that is explained.
        contextual_control_threshold, control_log_additive: as in a completion request.
        control_factor: by which the attention to a part is scaled to see what it does.
        control_token_overlap: what that does to a token that is a part of it in part.
        prompt_granularity: which parts.
        target_granularity: one explanation, or one for each token of the target.
        postprocessing: what becomes of each score.
        normalize: whether scores are brought to 0 to 1, after that.
    """

    prompt: Prompt
    target: str
    contextual_control_threshold: float | None = None
    control_factor: float | None = None
    control_token_overlap: ControlTokenOverlap | None = None
    control_log_additive: bool | None = None
    prompt_granularity: PromptGranularity | CustomGranularity | None = None
    target_granularity: TargetGranularity | None = None
    postprocessing: ExplanationPostprocessing | None = None
    normalize: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The request's body, but for the model; what is None is left out."""
        json = {**given_fields(self), "prompt": prompt_json(self.prompt)}
        granularity = self.prompt_granularity
        if isinstance(granularity, CustomGranularity):
            json["prompt_granularity"] = {"type": "custom", "delimiter": granularity.delimiter}
        elif granularity is not None:
            json["prompt_granularity"] = {"type": granularity}
        return json


@dataclass(frozen=True)
class TextScore:
    """How much some characters speak for the target; above 0 = for it.

    Args:
        start: the first one, in its item or in the target.
        length: characters.
        score: the score.
    """

    start: int
    length: int
    score: float


@dataclass(frozen=True)
class ImageScore:
    """How much a rectangle of an image speaks for the target.

    Args:
        left, top, width, height: in parts of the image's width and height: 0 to 1.
        score: the score.
    """

    left: float
    top: float
    width: float
    height: float
    score: float


Score = TextScore | ImageScore | float


@dataclass(frozen=True)
class ItemExplanation:
    """The scores of one item of the prompt, or of the target's own tokens before the explained one.

    Args:
        type: the item's, or `target`.
        scores: of an item of token ids one number for each.
    """

    type: Literal["text", "token_ids", "image", "target"]
    scores: Sequence[Score]


@dataclass(frozen=True)
class Explanation:
    """One explanation.

    Args:
        target: what is explained.
        items: one for each item of the prompt, then one for the target.
    """

    target: str
    items: Sequence[ItemExplanation]


@dataclass(frozen=True)
class ExplanationResponse:
    """The answer to an explanation request.

    Args:
        model_version: which model it was.
        explanations: one, or one for each token of the target.
    """

    model_version: str
    explanations: Sequence[Explanation]

    @staticmethod
    def from_json(json: Json) -> ExplanationResponse:
        """The answer that JSON is.

        Raises:
            KeyError: a field is missing.
        """
        explanations = tuple(
            Explanation(each["target"], tuple(map(_item, each["items"])))
            for each in json["explanations"]
        )
        return ExplanationResponse(json["model_version"], explanations)


def _item(json: Json) -> ItemExplanation:
    return ItemExplanation(json["type"], tuple(map(_score, json["scores"])))


def _score(json: Any) -> Score:
    if isinstance(json, int | float):
        return float(json)
    if "rect" in json:
        return from_fields(ImageScore, {**json["rect"], "score": json["score"]})
    return from_fields(TextScore, json)
