"""How the prompts of jobs become what one model reads: tokens, and pictures among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from neodim_sampling.errors import PromptTooLong
from neodim_sampling.prompt_items import ItemsPrompt
from neodim_sampling.prompts import ChatMessage, ChatPrompt, PreamblePrompt
from neodim_sampling.text.codec import TextCodec
from neodim_sampling.text.fitting import FittedPrompt, fit_prompt
from neodim_sampling.text.items import ReadPrompt, read_items
from neodim_sampling.text.plain import plain_ids, whole_prompt
from workers.contract.text_job import TextJob
from workers.engine.pictures import Eye, PlacedPicture, place_pictures, see_pictures


class PromptFitter:
    """Reads prompts for one model.

    Args:
        codec: the model's text codec.
        render_chat: puts a conversation into words; raises `TemplateRefused`.
        eos_ids: tokens that end a text; may be empty.
        max_length: tokens that one sequence may have.
        eye: sees pictures for the model; None = it reads none.
    """

    def __init__(
        self,
        codec: TextCodec,
        render_chat: Callable[[Sequence[ChatMessage]], str],
        *,
        eos_ids: frozenset[int],
        max_length: int,
        eye: Eye | None,
    ) -> None:
        self._codec = codec
        self._render_chat = render_chat
        self._eos_ids = eos_ids
        self._max_length = max_length
        self._eye = eye

    def fit(self, job: TextJob) -> tuple[FittedPrompt, Sequence[PlacedPicture]]:
        """The prompt of a job as the model reads it, and what of it is no text.

        Raises:
            RequestRejected: this model cannot read it.
        """
        if isinstance(job.prompt, PreamblePrompt):
            assert job.max_new_tokens is not None, "prompts are cut to what is to be generated"
            return fit_prompt(self._codec, job.prompt, job.max_new_tokens), ()
        if isinstance(job.prompt, ChatPrompt):
            text = self._render_chat(job.prompt.messages)
            return whole_prompt(self._codec, self._codec.encode_bare(text)), ()
        if isinstance(job.prompt, ItemsPrompt):
            return self._fit_items(job.prompt)
        ids = plain_ids(self._codec, job.prompt, self._eos_ids)
        return whole_prompt(self._codec, ids), ()

    def read_items(self, prompt: ItemsPrompt) -> tuple[ReadPrompt, Sequence[PlacedPicture]]:
        """The tokens of a prompt of items, and the pictures among them.

        Raises:
            RequestRejected: this model cannot read it.
        """
        seen = see_pictures(prompt.items, self._eye)
        tiles = [each.tiles for each in seen]
        read = read_items(self._codec, prompt.items, self._eos_ids, tiles)
        return read, place_pictures(seen, read.picture_spans)

    def check_room(self, n_prompt: int, n_behind: int = 0) -> None:
        """See that a prompt, and a text behind it, fit in a row.

        Raises:
            PromptTooLong: they do not.
        """
        if n_prompt + n_behind > self._max_length:
            behind = f" and {n_behind} behind them" if n_behind else ""
            raise PromptTooLong(
                f"prompt: {n_prompt} input tokens{behind} do not fit in the {self._max_length} "
                "tokens that this model can hold"
            )

    def _fit_items(self, prompt: ItemsPrompt) -> tuple[FittedPrompt, Sequence[PlacedPicture]]:
        read, pictures = self.read_items(prompt)
        fitted = replace(
            whole_prompt(self._codec, read.ids),
            factors=read.factors,
            n_start=len(read.start_ids),
            picture_spans=read.picture_spans,
        )
        if pictures:
            fitted = replace(fitted, used_prompt=self._codec.decode(fitted.text_ids))
        return fitted, pictures

    def room(self, job: TextJob, n_input: int) -> int:
        """Tokens that may be generated behind so many of input.

        Raises:
            PromptTooLong: fewer than the job asks for.
        """
        wanted = 1 if job.max_new_tokens is None else job.max_new_tokens
        if n_input + wanted > self._max_length:
            raise PromptTooLong(
                f"{self._too_large(job, n_input)}: {n_input} input tokens and {wanted} generated "
                f"ones do not fit in the {self._max_length} tokens that this model can hold"
            )
        return self._max_length - n_input if job.max_new_tokens is None else wanted

    def _too_large(self, job: TextJob, n_input: int) -> str:
        """The field at fault where input and generated tokens do not fit together."""
        if isinstance(job.prompt, PreamblePrompt):
            return "max_total_tokens"
        if n_input < self._max_length:
            return "maximum_tokens" if isinstance(job.prompt, ItemsPrompt) else "max_tokens"
        return "messages" if isinstance(job.prompt, ChatPrompt) else "prompt"
