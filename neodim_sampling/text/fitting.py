"""How preamble and prompt become the tokens that fit before the text to generate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from neodim_sampling.errors import InvalidParams, PromptTooLong
from neodim_sampling.prompts import PreamblePrompt
from neodim_sampling.text.codec import TextCodec


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """What the model reads, and what the request's texts became.

    Args:
        input_ids: all tokens to read, preamble first.
        n_preamble: tokens of the preamble on its own, leading ids included.
        preamble: its text, special tokens removed and decoded again.
        used_prompt: the part of the prompt that fits.
        n_original_input: tokens of preamble and uncut prompt together.
        n_original_prompt: those without the preamble's.
        n_used_prompt: input tokens without the preamble's.
        factors: for the attention that input tokens get, by their places, where it is not 1.
        n_start: input tokens that only stand for an empty prompt.
        picture_spans: of each picture, the place of its first token and the one behind its last;
            these tokens have no text.
    """

    input_ids: tuple[int, ...]
    n_preamble: int
    preamble: str
    used_prompt: str
    n_original_input: int
    n_original_prompt: int
    n_used_prompt: int
    factors: Mapping[int, float] = field(default_factory=dict)
    n_start: int = 0
    picture_spans: tuple[tuple[int, int], ...] = ()

    @property
    def text_places(self) -> list[int]:
        """Places of the input tokens that have a text: those of pictures are left out."""
        are_shown = {place for span in self.picture_spans for place in range(*span)}
        return [place for place in range(len(self.input_ids)) if place not in are_shown]

    @property
    def text_ids(self) -> list[int]:
        """The tokens at those places."""
        return [self.input_ids[place] for place in self.text_places]


@dataclass(frozen=True, slots=True)
class _Request:
    """The texts of a request as tokens; `ids` spell preamble and uncut prompt together."""

    preamble_ids: list[int]
    preamble: str
    ids: list[int]
    limit: int
    limit_text: str
    truncate_until: tuple[str, ...]


def fit_prompt(codec: TextCodec, prompt: PreamblePrompt, max_new_tokens: int) -> FittedPrompt:
    """Cut a prompt from its front until it fits behind its preamble.

    The preamble is never cut. Tokens that a model always reads first count like any others.

    Args:
        codec: the model's.
        prompt: preamble, prompt and the limit for input and generated text together.
        max_new_tokens: tokens to generate, >= 0; the rest of the limit is for the input.

    Raises:
        InvalidParams: no token is left once special tokens are removed.
        PromptTooLong: the preamble does not fit, or without one no part of the prompt does.
    """
    request = _read(codec, prompt, max_new_tokens)
    n_preamble, n_original = len(request.preamble_ids), len(request.ids)
    if n_original == 0:
        raise InvalidParams("prompt", "no text is left of it once special tokens are removed")
    if n_preamble > max(0, request.limit):
        raise PromptTooLong(f"{request.limit_text}, but the preamble takes {n_preamble}")
    if request.limit <= 0:
        raise PromptTooLong(f"{request.limit_text}, but the prompt takes {n_original}")
    if n_preamble == request.limit:
        ids = request.preamble_ids
    else:
        ids = request.ids if n_original <= request.limit else _truncate(codec, request)
    return FittedPrompt(
        input_ids=tuple(ids),
        n_preamble=n_preamble,
        preamble=request.preamble,
        used_prompt=_prompt_text(codec, request, ids),
        n_original_input=n_original,
        n_original_prompt=n_original - n_preamble,
        n_used_prompt=len(ids) - n_preamble,
    )


def _read(codec: TextCodec, prompt: PreamblePrompt, max_new_tokens: int) -> _Request:
    preamble_ids = codec.encode(codec.strip_special(prompt.preamble))
    preamble = codec.decode(preamble_ids)
    limit = prompt.max_total_tokens - max_new_tokens
    return _Request(
        preamble_ids=preamble_ids,
        preamble=preamble,
        ids=_join(codec, preamble_ids, preamble, prompt.text),
        limit=limit,
        limit_text=(
            f"max_total_tokens: {prompt.max_total_tokens} leaves {max(limit, 0)} tokens for the "
            f"input beside the {max_new_tokens} to generate"
        ),
        truncate_until=tuple(filter(None, prompt.truncate_until)),
    )


def _join(codec: TextCodec, preamble_ids: list[int], preamble: str, text: str) -> list[int]:
    """Tokens of preamble and text: together if that keeps the preamble's text, else one by one."""
    text = codec.strip_special(text, after=preamble)
    ids = codec.encode(preamble + text)
    if len(ids) >= len(preamble_ids) and codec.decode(ids).startswith(preamble):
        return ids
    return preamble_ids + codec.encode_bare(text)


def _prompt_text(codec: TextCodec, request: _Request, ids: list[int]) -> str:
    whole = codec.decode(ids)
    if whole.startswith(request.preamble):
        return whole[len(request.preamble) :]
    return codec.decode(ids[len(request.preamble_ids) :])


def _truncate(codec: TextCodec, request: _Request) -> list[int]:
    head = request.preamble_ids or list(codec.leading_ids)
    room = request.limit - len(head)
    if room < 1:
        raise PromptTooLong(f"{request.limit_text}, too few for any of the prompt")
    ids = head + _last_tokens(codec, request, room)
    while not codec.decode(ids).startswith(request.preamble):
        # Bytes left of a cut character would garble the end of the preamble.
        del ids[len(head)]
    if request.truncate_until:
        return _truncate_until(codec, request, _prompt_text(codec, request, ids))
    return ids


def _last_tokens(codec: TextCodec, request: _Request, room: int) -> list[int]:
    """The last tokens of the prompt, never one with text of the preamble in it."""
    start = len(request.ids) - room
    if _covers_preamble(codec, request, start):
        return request.ids[start:]
    # Spelt behind the preamble's own tokens, the prompt may fit without the merged token.
    prompt_ids = codec.encode_bare(_prompt_text(codec, request, request.ids))
    if len(prompt_ids) <= room:
        return prompt_ids
    while start < len(request.ids) and not _covers_preamble(codec, request, start):
        start += 1
    return request.ids[start:]


def _covers_preamble(codec: TextCodec, request: _Request, n_tokens: int) -> bool:
    return codec.decode(request.ids[:n_tokens]).startswith(request.preamble)


def _truncate_until(codec: TextCodec, request: _Request, text: str) -> list[int]:
    """Cut through the next of the strings, again until what is left fits.

    Encoded anew, a text may take more tokens than as the end of a longer one.
    """
    while text:
        found = [(text.find(each), len(each)) for each in request.truncate_until if each in text]
        if not found:
            break
        start, length = min(found, key=lambda each: each[0])
        text = text[start + length :]
        ids = _join(codec, request.preamble_ids, request.preamble, text)
        if text and ids and len(ids) <= request.limit:
            return ids
    if not request.preamble_ids:
        raise PromptTooLong(
            f"{request.limit_text}, but the prompt takes {len(request.ids)}, and nothing that fits "
            "is left of it once it is cut through one of truncate_prompt_until"
        )
    return request.preamble_ids
