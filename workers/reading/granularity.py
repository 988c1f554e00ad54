"""How a text is cut into words, sentences, paragraphs, or at a delimiter of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from neodim_sampling.text.items import Span
from workers.contract.reading_job import Granularity

_WORD = re.compile(r"\S+")
# A run that is no end is passed over at once, so that many dots take no longer than many letters.
_SENTENCE_END = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019\xbb)\]]*+(?=\s|\Z)"
    # Chinese and Japanese marks have no space behind them.
    r"|[\u3002\uff01\uff1f]++[\u300d\u300f\u201d\u2019\uff09]*+"
    r"|\n"
)
_PARAGRAPH_END = re.compile(r"\n\s*\n")


def text_spans(text: str, granularity: Granularity, delimiter: str = "") -> list[Span]:
    """The characters of each part of a text; what stands between parts belongs to none.

    A sentence ends with its marks and closing quotes before white space, or with its line; a
    paragraph before an empty line. Parts of custom granularity keep their white space, but for
    spaces in front.

    Args:
        text: what to cut.
        granularity: not by token, which depends on the model.
        delimiter: of custom granularity.
    """
    if granularity is Granularity.WORD:
        return [each.span() for each in _WORD.finditer(text)]
    if granularity is Granularity.CUSTOM:
        return list(_trimmed(text, _between(text, re.compile(re.escape(delimiter))), " ", ""))
    if granularity is Granularity.PARAGRAPH:
        return list(_trimmed(text, _between(text, _PARAGRAPH_END)))
    assert granularity is Granularity.SENTENCE, "tokens are the model's"
    return list(_trimmed(text, _up_to(text, _SENTENCE_END)))


def _between(text: str, delimiter: re.Pattern[str]) -> Iterator[Span]:
    """What stands between delimiters."""
    start = 0
    for each in delimiter.finditer(text):
        yield start, each.start()
        start = each.end()
    yield start, len(text)


def _up_to(text: str, end: re.Pattern[str]) -> Iterator[Span]:
    """What stands between ends, each with the one behind it."""
    start = 0
    for each in end.finditer(text):
        yield start, each.end()
        start = each.end()
    yield start, len(text)


def _trimmed(
    text: str, spans: Iterable[Span], front: str | None = None, back: str | None = None
) -> Iterator[Span]:
    """Spans without these characters around; None = white space. Those of white space go."""
    for start, stop in spans:
        part = text[start:stop]
        if part.strip():
            n_back = len(part) - len(part.rstrip(back))
            yield start + len(part) - len(part.lstrip(front)), stop - n_back
