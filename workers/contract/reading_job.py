"""Jobs for which a model only reads: how likely a text is, what speaks for it, and its states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

from neodim_sampling.errors import InvalidParams
from neodim_sampling.prompt_items import ItemsPrompt


class Pooling(StrEnum):
    """How the states of all tokens become one."""

    MEAN = "mean"
    WEIGHTED_MEAN = "weighted_mean"
    MAX = "max"
    LAST_TOKEN = "last_token"
    ABS_MAX = "abs_max"


class Granularity(StrEnum):
    """How a prompt is cut into parts."""

    TOKEN = "token"
    WORD = "word"
    SENTENCE = "sentence"
    PARAGRAPH = "paragraph"
    CUSTOM = "custom"


class Postprocessing(StrEnum):
    """What is done to scores before they are told."""

    NONE = "none"
    ABSOLUTE = "absolute"
    SQUARE = "square"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationJob:
    """How likely is a text behind a prompt?

    Args:
        model: name of the model, as clients know it.
        prompt: what comes before.
        expected: the text, which is tokenised by itself.
        user: who asks, in the client's words; "" = not said.
    """

    model: str
    prompt: ItemsPrompt
    expected: str
    user: str = ""
    kind: Literal["evaluation"] = "evaluation"

    def __post_init__(self) -> None:
        """Check that there is a text."""
        if not self.expected:
            raise InvalidParams("completion_expected", "must not be empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """How likely the text was.

    Args:
        n_prompt: tokens of the prompt.
        n_expected: tokens of the text.
        n_characters: its characters.
        log_prob: natural logarithm of its probability.
        is_greedy: whether each of its tokens was the likeliest one.
        likeliest_text: what those tokens spell that were.
    """

    n_prompt: int
    n_expected: int
    n_characters: int
    log_prob: float
    is_greedy: bool
    likeliest_text: str
    is_partial: bool = False
    kind: Literal["evaluation"] = "evaluation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationJob:
    """Which parts of a prompt speak for a text behind it?

    Args:
        model: name of the model, as clients know it.
        prompt: what comes before; its own controls stay in force.
        target: the text.
        factor: for the attention of the part that is looked at.
        is_complete: whether a token that a part covers in part gets the whole factor.
        granularity: of the prompt; None = the one with nearest to 30 parts.
        delimiter: what stands between parts of custom granularity; else "".
        is_by_token: whether each token of the target is explained by itself.
        postprocessing: what is done to the scores.
        is_normalised: whether the scores of an explanation are told as shares, 0 ... 1.
        user: who asks, in the client's words; "" = not said.
    """

    model: str
    prompt: ItemsPrompt
    target: str
    factor: float = 0.1
    is_complete: bool = False
    granularity: Granularity | None = None
    delimiter: str = ""
    is_by_token: bool = False
    postprocessing: Postprocessing = Postprocessing.NONE
    is_normalised: bool = False
    user: str = ""
    kind: Literal["explanation"] = "explanation"

    def __post_init__(self) -> None:
        """Check what belongs together."""
        if not self.target:
            raise InvalidParams("target", "must not be empty")
        if (self.granularity is Granularity.CUSTOM) != bool(self.delimiter):
            problem = "needs a non-empty delimiter with the type custom, and none with others"
            raise InvalidParams("prompt_granularity", problem)


class TextScore(msgspec.Struct, frozen=True, kw_only=True, tag="text"):
    """The score of some characters of a text."""

    start: int
    length: int
    score: float


class IdScore(msgspec.Struct, frozen=True, kw_only=True, tag="id"):
    """The score of one token id of a list."""

    score: float


class AreaScore(msgspec.Struct, frozen=True, kw_only=True, tag="area"):
    """The score of a rectangle of a picture, in shares of the whole picture."""

    left: float
    top: float
    width: float
    height: float
    score: float


PartScore: TypeAlias = TextScore | IdScore | AreaScore


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What speaks for one target.

    Args:
        target: the target, or one token of it.
        items: scores of the parts of each of the prompt's items. A score is how much less likely
            the target gets, in natural logarithm, when the part gets less attention.
        of_target: the same of the target's earlier tokens; empty for a target as a whole.
    """

    target: str
    items: tuple[tuple[PartScore, ...], ...]
    of_target: tuple[TextScore, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationResult:
    """What speaks for the target, or for each of its tokens.

    Args:
        item_kinds: kind of each of the prompt's items: text, token_ids or image.
        n_prompt: tokens of the prompt.
        n_target: tokens of the target.
        n_variants: times that the model read prompt and target.
    """

    item_kinds: tuple[str, ...]
    explanations: tuple[Explanation, ...]
    n_prompt: int
    n_target: int
    n_variants: int
    is_partial: bool = False
    kind: Literal["explanation"] = "explanation"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingJob:
    """What states does a model have when it reads prompts?

    Args:
        model: name of the model, as clients know it.
        prompts: at least one.
        layers: which states: 0 = the input embeddings, n = those behind the n-th layer, the last
            of which are behind the final norm; negative numbers count from there.
        pooling: how the states of all tokens of a prompt become one.
        is_normalised: whether the vectors are told at length 1.
        tells_tokens: whether the prompts' tokens are told too.
        user: who asks, in the client's words; "" = not said.
    """

    model: str
    prompts: tuple[ItemsPrompt, ...]
    layers: tuple[int, ...]
    pooling: tuple[Pooling, ...]
    is_normalised: bool = False
    tells_tokens: bool = False
    user: str = ""
    kind: Literal["embedding"] = "embedding"

    def __post_init__(self) -> None:
        """Check that something is asked for."""
        for name in ("prompts", "layers", "pooling"):
            if not getattr(self, name):
                raise InvalidParams(name, "must not be empty")


class Embedding(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of one prompt.

    Args:
        vectors: layer (0 or above), pooling, and the vector.
        n_tokens: tokens of the prompt.
        tokens: what each of them spells by itself, where it is asked for.
    """

    vectors: tuple[tuple[int, Pooling, tuple[float, ...]], ...]
    n_tokens: int
    tokens: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingResult:
    """The vectors of each prompt."""

    embeddings: tuple[Embedding, ...]
    is_partial: bool = False
    kind: Literal["embedding"] = "embedding"


ReadingJob: TypeAlias = EvaluationJob | ExplanationJob | EmbeddingJob
ReadingResult: TypeAlias = EvaluationResult | ExplanationResult | EmbeddingResult
