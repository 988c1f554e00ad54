"""The only place where generated tokens become text one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy
from itertools import takewhile

from neodim_sampling.text.codec import TextCodec

UNFINISHED = "\ufffd"
"""What an unfinished character decodes to."""

OVERLAP_TOKENS = 4
"""Tokens kept before a window's new ones: an unfinished character has at most 3 bytes before."""

WINDOW_TOKENS = 16
"""Tokens after which a window moves on."""

MAX_RUN_TOKENS = 64
"""Tokens after which a window moves on even within a run of byte tokens."""


class IncrementalDecoder:
    """The text of generated tokens, growing with each, from decodes of a short window.

    It equals the decoded whole without the decoded context, with these exceptions. A character
    that the context leaves unfinished and a generated token completes belongs to the generated
    text. Where unknown characters are spelt in byte tokens, a whole run of them is garbled by one
    wrong byte; this reaches back `MAX_RUN_TOKENS`, and text before that stays as it is.

    Args:
        codec: the model's.
        context_ids: tokens before the generated ones.
    """

    def __init__(self, codec: TextCodec, context_ids: Sequence[int]) -> None:
        self.codec = codec
        self._window = self._end_of(context_ids, MAX_RUN_TOKENS)
        self._base = codec.decode(self._window)
        self._passed = ""
        self._recent = ""
        self._n_unstable = 0
        self._run_start: int | None = None

    @property
    def stable_text(self) -> str:
        """The generated text so far without what the next tokens may change. It only grows."""
        return self._passed + self._recent[: len(self._recent) - self._n_unstable]

    def final_text(self) -> str:
        """The generated text if nothing follows: an unfinished character is U+FFFD."""
        return self._passed + self._recent

    def readable_rest(self) -> str:
        """What is behind the stable text if nothing follows, up to an unfinished character."""
        return self._recent[len(self._recent) - self._n_unstable :].partition(UNFINISHED)[0]

    def behind(self, token: int) -> IncrementalDecoder:
        """What this is after one more token; this one stays as it is."""
        other = copy(self)
        other._window = [*self._window]
        other.push(token)
        return other

    def push(self, token: int) -> None:
        """Add the next generated token."""
        if token in self.codec.ignored_ids:
            return
        is_byte = token in self.codec.fallback_bytes
        if is_byte and self._run_start is None:
            self._run_start = len(self._recent)
        if not is_byte:
            self._run_start = None
        self._window.append(token)
        self._recent = self._behind_base(self.codec.decode(self._window))
        self._n_unstable = self._count_unstable()
        self._move_on()

    def _behind_base(self, whole: str) -> str:
        if whole.startswith(self._base):
            return whole[len(self._base) :]
        if self._base.endswith(UNFINISHED):
            pairs = zip(self._base, whole, strict=False)
            n_same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            return whole[n_same:]
        return whole[len(self._base) :]

    def _count_unstable(self) -> int:
        if self._run_start is not None:
            return max(0, len(self._recent) - self._run_start)
        return int(self._recent.endswith(UNFINISHED))

    def _move_on(self) -> None:
        """Move the window on where the text it leaves behind can no longer change."""
        if len(self._window) < WINDOW_TOKENS:
            return
        max_run = MAX_RUN_TOKENS
        if self._run_start is not None:
            if len(self._window) < MAX_RUN_TOKENS or self._is_run_unfinished():
                return
            self._n_unstable = 0
            self._run_start = 0
            max_run = OVERLAP_TOKENS
        self._passed = self.stable_text
        self._recent = self._recent[len(self._recent) - self._n_unstable :]
        self._window = self._end_of(self._window, max_run)
        base = self.codec.decode(self._window)
        self._base = base[: len(base) - self._n_unstable]

    def _is_run_unfinished(self) -> bool:
        values = self.codec.fallback_bytes
        run = list(takewhile(values.__contains__, reversed(self._window)))
        try:
            bytes(values[token] for token in reversed(run)).decode()
        except UnicodeDecodeError as error:
            return error.reason == "unexpected end of data"
        return False

    def _end_of(self, ids: Sequence[int], max_run: int) -> list[int]:
        """The last visible tokens: enough to decode what follows as behind all of them."""
        end: deque[int] = deque()
        values = self.codec.fallback_bytes
        is_run = True
        for token in reversed(ids):
            if len(end) >= (max_run if is_run else OVERLAP_TOKENS):
                break
            if token not in self.codec.ignored_ids:
                end.appendleft(token)
                is_run = is_run and token in values
        while len(end) > 1 and _is_continuation(values.get(end[0])):
            end.popleft()
        return list(end)


def _is_continuation(byte: int | None) -> bool:
    return byte is not None and 0x80 <= byte < 0xC0
